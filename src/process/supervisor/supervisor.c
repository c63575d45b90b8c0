/* See supervisor.h: from the command line to a process that keeps a job, and back. */
#include "process/supervisor/supervisor.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/system/nofile_limit.h"
#include "core/hash.h"
#include "process/supervisor/guard.h"
#include "process/supervisor/recover.h"
#include "process/supervisor/supervision.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>

enum { CONNECTION_FD = 3, LOCK_TRIES = 200, LOCK_WAIT_MS = 10 };

struct arguments {
    const char *folder;
    const char *runner;
    const char *cgroup_root;
    enum isolation_mode isolation;
    bool connected;
    bool network_private;
};

static int read_arguments(int argc, char **argv, struct arguments *ret, struct muster_err *err)
{
    static const struct option options[] = {
        {"dir", required_argument, NULL, 'd'},         {"connected", no_argument, NULL, 'c'},
        {"runner", required_argument, NULL, 'r'},      {"private-network", no_argument, NULL, 'n'},
        {"cgroup-root", required_argument, NULL, 'g'}, {"isolation", required_argument, NULL, 'i'},
        {"open-files", required_argument, NULL, 'o'},  {NULL, 0, NULL, 0},
    };
    *ret = (struct arguments){.cgroup_root = "/sys/fs/cgroup", .isolation = ISOLATION_AUTO};
    optind = 1;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 'd': ret->folder = optarg; break;
        case 'c': ret->connected = true; break;
        case 'r': ret->runner = optarg; break;
        case 'n': ret->network_private = true; break;
        case 'g': ret->cgroup_root = optarg; break;
        case 'i':
            ret->isolation =
                strcmp(optarg, "subreaper") == 0 ? ISOLATION_SUBREAPER : ISOLATION_AUTO;
            break;
        case 'o': nofile_limit_set_user(strtoul(optarg, NULL, 10)); break;
        default: return muster_fail(err, MUSTER_EINVAL, "muster supervisor: unknown option");
        }
    }
    return ret->folder ? 0 : muster_fail(err, MUSTER_EINVAL, "muster supervisor: --dir is needed");
}

/* The controller reaps the first process at once; the second has no parent that waits for it. */
static void go_into_background(void)
{
    pid_t child = fork();
    if (child != 0) {
        _exit(child < 0 ? 71 : 0);
    }
    (void)setsid();
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)sigaction(SIGPIPE, &ignore, NULL);
    (void)sigaction(SIGHUP, &ignore, NULL);
    (void)sigaction(SIGINT, &ignore, NULL);
    (void)sigaction(SIGTERM, &ignore, NULL);
    (void)prctl(PR_SET_NAME, "muster-superv");
}

/* A job has one supervisor. Monitors hold the lock too, so a new supervisor waits until the
 * monitors of a killed one are gone. */
static int take_lock(const char *folder, int *ret_fd, struct muster_err *err)
{
    muster_auto(free) char *path = file_join(folder, "lock");
    int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd < 0) {
        return muster_fail(err, MUSTER_ECREATE, "cannot create %s/lock: %s", folder,
                           strerror(errno));
    }
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
            *ret_fd = fd;
            return 0;
        }
        (void)poll(NULL, 0, LOCK_WAIT_MS);
    }
    close(fd);
    return muster_fail(err, MUSTER_EEXIST, "another supervisor uses %s", folder);
}

/* Makes a name that the next supervisor of this job makes again (a hash of its folder). */
static void group_name(const char *folder, char ret[40])
{
    unsigned long long hash = hash_text(HASH_START, folder);
    (void)snprintf(ret, 40, "muster-%016llx", hash);
}

static void init_cgroups(struct cgroup_job *cgroups, const struct arguments *arguments)
{
    char name[40];
    muster_auto(free) char *own = NULL;
    group_name(arguments->folder, name);
    (void)file_read("/proc/self/cgroup", 1 << 16, &own, NULL, NULL);
    cgroup_job_init(cgroups, arguments->cgroup_root, own ? own : "", name);
}

/* Makes the kernel reap the monitors; their sockets report their end. */
static void reap_by_itself(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)sigaction(SIGCHLD, &ignore, NULL);
}

/* Control groups are set up before the namespaces are entered, since it is the user outside who
 * decides what may be written. */
static int keep(const struct arguments *arguments, struct supervision_options *options,
                struct muster_err *err)
{
    struct isolation isolation = {.lifeline_fd = -1};
    struct guard guard = {0};
    struct cgroup_job cgroups;
    uv_loop_t loop;
    init_cgroups(&cgroups, arguments);
    options->isolation = &isolation;
    options->cgroups = &cgroups;
    int r = isolation_enter(&isolation, arguments->isolation, arguments->network_private, err);
    if (r == 0 && isolation.mode == ISOLATION_SUBREAPER) {
        r = guard_start(&guard, options->job_folder, options->lock_fd, err);
    }
    reap_by_itself();
    int no_loop = r == 0 ? uv_loop_init(&loop) : 0;
    if (no_loop < 0) {
        r = muster_fail(err, MUSTER_EOS, "cannot start an event loop: %s", uv_strerror(no_loop));
    } else if (r == 0) {
        r = supervision_run(&loop, options, err);
        (void)uv_run(&loop, UV_RUN_DEFAULT);
        (void)uv_loop_close(&loop);
    }
    guard_stop(&guard);
    isolation_leave(&isolation);
    cgroup_job_done(&cgroups);
    return r;
}

static int run(const struct arguments *arguments, struct muster_err *err)
{
    char why[RECOVER_WHY_BYTES];
    muster_auto(close) int lock_fd = -1;
    muster_auto(free) char *folder = realpath(arguments->folder, NULL);
    muster_auto(free) char *staging = folder ? file_join(folder, "root") : NULL;
    if (!staging) {
        return muster_fail(err, MUSTER_ENOENT, "the job's folder %s: %s", arguments->folder,
                           strerror(errno));
    }
    int r = take_lock(folder, &lock_fd, err);
    r = r < 0 ? r : recover(folder, why, err);
    r = r < 0 ? r : file_mkdir(staging, 0700, err);
    if (r < 0) {
        return r;
    }
    struct supervision_options options = {
        .job_folder = folder,
        .staging = staging,
        .runner = arguments->runner,
        .lost_why = why[0] ? why : NULL,
        .connection_fd = arguments->connected ? CONNECTION_FD : -1,
        .lock_fd = lock_fd,
    };
    struct arguments placed = *arguments;
    placed.folder = folder;
    return keep(&placed, &options, err);
}

/* No loop exists yet: writes one line, if possible. */
static void tell_failure(const struct arguments *arguments, const struct muster_err *err)
{
    muster_auto(doc) json_t *failed =
        json_pack("{s:s, s:i, s:s}", "event", "failed", "code", err->code, "why", err->text);
    muster_auto(free) char *text = failed ? doc_print(failed) : NULL;
    if (arguments->connected && text) {
        (void)dprintf(CONNECTION_FD, "%s\n", text);
    }
    log_event(LOG_ERROR, "supervisor.start", "%s", err->text);
}

int supervisor_main(int argc, char **argv)
{
    struct arguments arguments;
    struct muster_err err = MUSTER_ERR_INIT;
    if (read_arguments(argc, argv, &arguments, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.text);
        return muster_code_exit(err.code);
    }
    go_into_background();
    if (arguments.connected) {
        (void)fcntl(CONNECTION_FD, F_SETFD, FD_CLOEXEC);
    }
    if (run(&arguments, &err) < 0) {
        tell_failure(&arguments, &err);
        return muster_code_exit(err.code);
    }
    return 0;
}
