/* muster down: the jobs end (or with --keep go on), then the controller leaves. */
#include "cli/verbs.h"

#include "base/file.h"
#include "base/home.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { LOOK_MS = 20 };

/* The turns of waiting for the controller's process to be gone. */
struct parting {
    struct cli *cli;
    uv_timer_t timer;
    pid_t pid;
    int64_t until_ms;
    bool gone;
};

static void look(uv_timer_t *timer)
{
    struct parting *p = timer->data;
    (void)waitpid(p->pid, NULL,
                  WNOHANG); /* the controller may be one that this very verb started */
    p->gone = kill(p->pid, 0) < 0 && errno == ESRCH;
    if (p->gone || cli_now_ms() >= p->until_ms) {
        uv_close((uv_handle_t *)timer, NULL);
    }
}

static int wait_gone(struct cli *cli, pid_t pid, int64_t limit_ms)
{
    struct parting p = {.cli = cli, .pid = pid, .until_ms = cli_now_ms() + limit_ms};
    uv_timer_init(&cli->loop, &p.timer);
    p.timer.data = &p;
    uv_timer_start(&p.timer, look, 0, LOOK_MS);
    uv_run(&cli->loop, UV_RUN_DEFAULT);
    return p.gone ? 0
                  : muster_fail(&cli->err, MUSTER_ETIMEDOUT,
                                "the controller (process %d) is still ending its jobs", (int)pid);
}

/* Jobs whose controller was killed still run under their supervisors: a new one must end them. */
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

int cli_down(struct cli *cli)
{
    bool keep = args_flag(&cli->args, "keep");
    int64_t limit_ms = 0;
    int r = args_duration(&cli->args, "timeout", &limit_ms, &cli->err);
    if (r == 0) {
        r = cli_expect_operands(cli, 0, 0);
    }
    if (r < 0) {
        return r;
    }
    r = cli_connect(cli, !keep && jobs_may_run(&cli->err) ? KUBE_START : KUBE_RUNNING);
    if (r == MUSTER_EUNAVAIL && !cli->kube) {
        printf("No controller runs.\n");
        return 0;
    }
    muster_auto(doc) json_t *status = NULL;
    muster_auto(doc) json_t *body = json_pack("{s:s}", "jobs", keep ? "keep" : "end");
    if (r == 0) {
        r = kube_call(cli->kube, "GET", "/muster/v1/status", NULL, &status, &cli->err);
    }
    if (r == 0) {
        r = kube_call(cli->kube, "POST", "/muster/v1/shutdown", body, NULL, &cli->err);
    }
    if (r < 0) {
        return r;
    }
    pid_t pid = (pid_t)doc_int(status, "pid", 0);
    if (pid <= 0) {
        return muster_fail(&cli->err, MUSTER_EPROTO, "the controller does not say who it is");
    }
    kube_close(muster_take(cli->kube));
    r = wait_gone(cli, pid, limit_ms);
    if (r == 0) {
        printf("The controller has ended%s.\n", keep ? "; running jobs go on" : "");
    }
    return r;
}
