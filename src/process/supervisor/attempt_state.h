/* What the files of an attempt share. attempt_life.c: its life. attempt_limits.c: its control
 * groups. attempt_record.c: what is written down about it, and told. attempt_request.c: what its
 * monitor is asked to do. attempt_look.c: what is asked about it. attempt_hunt.c: what its killed
 * monitor has left.
 *
 * Layer: services; private to them.
 */
#pragma once

#include "process/log/write.h"
#include "process/monitor/monitor.h"
#include "process/supervisor/attempt.h"
#include "process/supervisor/container_watch.h"
#include "process/wire/identity.h"

struct attempt {
    const struct attempt_place *place;
    char *id;
    char *folder;
    char *mark;
    char *hosts; /* the pod's /etc/hosts; NULL: the machine's */
    struct process_spec spec;
    struct cgroup cgroup;
    struct cgroup exec_cgroup; /* of further commands; made with the first */
    bool has_exec_cgroup;
    struct log_writer log;
    struct stall stall;
    struct container_watch *container; /* NULL: the processes are its own */
    bool has_log;
    int log_fd;     /* the pipe's reading end */
    int control_fd; /* the monitor's socket */
    pid_t monitor;
    uv_poll_t log_poll;
    uv_poll_t control_poll;
    uv_timer_t hunt; /* attempt_hunt.c */
    int hunt_rounds;
    void (*on_hunted)(struct attempt *attempt);
    int open_handles;
    json_t *started; /* the record */
    char identity[IDENTITY_BYTES_MAX];
    int64_t started_unix_ms;
    int64_t machine_kills; /* for want of memory, before it began (cgroup_machine_kills) */
    bool explained;        /* its log says what it was in */
    bool killed;           /* we sent SIGKILL */
    bool interrupted;      /* SIGINT, by whatever controller */
    bool terminated;       /* SIGTERM */
    bool failed;           /* never ran */
    bool ended;            /* `end` says how */
    struct monitor_message end;
};

/* ---- attempt_life.c ---- */

/* Moves what the container has written until now into the log. */
void attempt_drain(struct attempt *attempt);

/* ---- attempt_hunt.c ---- */

/* Kills what its monitor, which was killed, has left; on_hunted is called once nothing is, perhaps
 * at once, or when that takes longer than some seconds. */
void attempt_hunt(struct attempt *attempt, void (*on_hunted)(struct attempt *attempt));

/* ---- attempt_limits.c ---- */

/* What limits cannot be had here is noted. */
void attempt_limits_make(struct attempt *attempt);
/* How the container's process, or a further command's, enters its control groups; the caller closes
 * them. An error: the limits would not hold. */
int attempt_limits_open(const struct attempt *attempt, int ret_fds[CGROUP_KINDS],
                        struct muster_err *err);
/* The control groups of further commands are made with the first; they have the same limits. */
int attempt_limits_open_exec(struct attempt *attempt, int ret_fds[CGROUP_KINDS],
                             struct muster_err *err);

/* ---- attempt_record.c ---- */

/* Makes the folder, with what was asked for and that it begins. MUSTER_EEXIST: it did before. */
int attempt_record_start(struct attempt *attempt, const json_t *spec, struct muster_err *err);
/* It runs since now. */
void attempt_record_running(struct attempt *attempt);
/* It ended as attempt->end and ->failed say. */
void attempt_record_end(struct attempt *attempt);
/* Something is not as asked. */
void attempt_note(const struct attempt *attempt, const char *text);
