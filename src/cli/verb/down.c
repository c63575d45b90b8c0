/* muster down: ends the jobs (or with --keep lets them go on) and then the controller. */
#include "cli/command/verbs.h"

#include "base/file.h"
#include "base/home.h"
#include "process/wire/identity.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { KILL_MS = 10000 };

/* Waits until the process has ended: its pidfd is readable then, even before the process is reaped.
 */
static int wait_gone(struct cli *cli, int pidfd, int64_t limit_ms)
{
    struct pollfd ended = {.fd = pidfd, .events = POLLIN};
    int wait_ms = limit_ms > INT_MAX ? INT_MAX : (int)limit_ms;
    return poll(&ended, 1, wait_ms) > 0
               ? 0
               : muster_fail(&cli->err, MUSTER_ETIMEDOUT,
                             "the controller is still stopping its jobs (see muster events)");
}

/* Whether jobs may run without a controller: jobs whose controller was killed still run under their
 * supervisors, and a new controller must end them. */
static bool jobs_may_run(struct muster_err *err)
{
    struct home home = {0};
    if (home_open(&home, err) < 0) {
        return false;
    }
    muster_auto(free) char *jobs = home_file(&home, "jobs");
    bool any = jobs && file_exists(jobs);
    home_done(&home);
    return any;
}

/* Asks the controller to end; *ret is its pidfd. */
static int ask_to_leave(struct cli *cli, bool keep, int *ret, struct muster_err *err)
{
    muster_auto(doc) json_t *status = NULL;
    muster_auto(doc) json_t *body = json_pack("{s:s}", "jobs", keep ? "keep" : "end");
    int r = kube_call(cli->kube, "GET", "/muster/v1/status", NULL, &status, err);
    if (r < 0) {
        return r;
    }
    char identity[IDENTITY_BYTES_MAX];
    if (!identity_of((pid_t)doc_int(status, "pid", 0), identity)) {
        return muster_fail(err, MUSTER_EPROTO, "the controller did not report its process id");
    }
    muster_auto(close) int pidfd = -1;
    r = identity_open(identity, &pidfd, err);
    r = r < 0 ? r : kube_call(cli->kube, "POST", "/muster/v1/shutdown", body, NULL, err);
    if (r == 0) {
        *ret = pidfd;
        pidfd = -1;
    }
    return r;
}

/* Kills the controller. It loses nothing: the next one reads the store and the supervisors'
 * records. */
static int kill_controller(struct cli *cli)
{
    char identity[IDENTITY_BYTES_MAX];
    muster_auto(close) int pidfd = -1;
    pid_t pid = kube_controller_pid(cli->kube);
    if (pid <= 0 || !identity_of(pid, identity) || identity_open(identity, &pidfd, NULL) < 0) {
        return 0; /* the controller has ended meanwhile */
    }
    if (syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) < 0) {
        return muster_fail(&cli->err, MUSTER_EOS, "cannot kill the controller, process %d: %s",
                           (int)pid, strerror(errno));
    }
    cli_say("killed the controller (process %d), which did not answer", (int)pid);
    return wait_gone(cli, pidfd, KILL_MS);
}

/* Asks the controller to end, and kills it if it does not answer; it has then ended, so *ret stays
 * -1 with --keep. */
static int force_to_leave(struct cli *cli, bool keep, int *ret)
{
    kube_hurry(cli->kube);
    int r = ask_to_leave(cli, keep, ret, &cli->err);
    if (r != MUSTER_ETIMEDOUT) {
        return r;
    }
    r = kill_controller(cli);
    kube_close(muster_take(cli->kube));
    if (r < 0 || keep) {
        return r;
    }
    r = cli_connect(cli, KUBE_START);
    return r < 0 ? r : ask_to_leave(cli, keep, ret, &cli->err);
}

/* Explains how to make room on a full disk: the end of each job has to be written. */
static int say_what_makes_room(struct cli *cli, int r)
{
    char said[MUSTER_ERR_TEXT_BYTES];
    (void)snprintf(said, sizeof said, "%s", cli->err.text);
    return r != MUSTER_ECREATE || !strstr(said, "is full")
               ? r
               : muster_fail(&cli->err, r,
                             "%s: muster history --prune removes past runs, and muster down --keep "
                             "ends the controller while its jobs go on",
                             said);
}

int cli_down(struct cli *cli)
{
    bool keep = args_flag(&cli->args, "keep");
    int64_t limit_ms = 0;
    muster_auto(close) int controller = -1;
    int r = args_duration(&cli->args, "timeout", &limit_ms, &cli->err);
    r = r < 0 ? r : cli_expect_operands(cli, 0, 0);
    if (r < 0) {
        return r;
    }
    bool start = !keep && jobs_may_run(&cli->err);
    r = cli_connect(cli, start ? KUBE_START : KUBE_RUNNING);
    if (r == MUSTER_EUNAVAIL && !start) {
        printf("No controller runs.\n");
        return 0;
    }
    if (r == 0 && args_flag(&cli->args, "force")) {
        r = force_to_leave(cli, keep, &controller);
    } else if (r == 0) {
        r = ask_to_leave(cli, keep, &controller, &cli->err);
    }
    if (r < 0) {
        return say_what_makes_room(cli, r);
    }
    kube_close(muster_take(cli->kube)); /* an open client would keep the controller running */
    r = controller < 0 ? 0 : wait_gone(cli, controller, limit_ms);
    if (r == 0) {
        printf("The controller has ended%s.\n", keep ? "; running jobs go on" : "");
    }
    return r;
}
