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
    char *hosts; /* path of the pod's /etc/hosts; NULL: it sees the machine's */
    struct process_spec spec;
    struct cgroup cgroup;
    struct cgroup exec_cgroup; /* for further commands; made with the first of them */
    bool has_exec_cgroup;
    struct log_writer log;
    struct stall stall;
    struct container_watch *container; /* NULL: the processes are not in a podman container */
    bool has_log;
    int log_fd;     /* the reading end of the pipe */
    int control_fd; /* the monitor's socket */
    pid_t monitor;
    uv_poll_t log_poll;
    uv_poll_t control_poll;
    uv_timer_t hunt; /* used by attempt_hunt.c */
    int hunt_rounds;
    void (*on_hunted)(struct attempt *attempt);
    int open_handles;
    json_t *started; /* the content of started.json */
    char identity[IDENTITY_BYTES_MAX];
    int64_t started_unix_ms;
    int64_t machine_kills; /* for want of memory, before the attempt began (cgroup_machine_kills) */
    bool explained;        /* its log says where its processes were */
    bool killed;           /* SIGKILL was sent */
    bool interrupted;      /* SIGINT was sent, by any controller */
    bool terminated;       /* SIGTERM was sent */
    bool failed;           /* it never ran */
    bool ended;            /* `end` says how it ended */
    struct monitor_message end;
};

/* ---- attempt_life.c ---- */

/* Moves what the container has written so far into the log. */
void attempt_drain(struct attempt *attempt);

/* ---- attempt_hunt.c ---- */

/* Kills the processes that its killed monitor has left; calls on_hunted when none is left, perhaps
 * at once, or after some seconds all the same. */
void attempt_hunt(struct attempt *attempt, void (*on_hunted)(struct attempt *attempt));

/* ---- attempt_limits.c ---- */

/* Makes the control groups, and notes limits that are not possible on this machine. */
void attempt_limits_make(struct attempt *attempt);
/* Opens the entrances by which the container's process, or a further command, enters its control
 * groups; the caller closes them. An error means that the limits would not hold. */
int attempt_limits_open(const struct attempt *attempt, int ret_fds[CGROUP_KINDS],
                        struct muster_err *err);
/* The control groups of further commands are made with the first command; they have the same
 * limits. */
int attempt_limits_open_exec(struct attempt *attempt, int ret_fds[CGROUP_KINDS],
                             struct muster_err *err);

/* ---- attempt_record.c ---- */

/* Makes the folder, with the spec and the record of the start. MUSTER_EEXIST: the attempt was
 * started before. */
int attempt_record_start(struct attempt *attempt, const json_t *spec, struct muster_err *err);
/* Records that it runs, from now on. */
void attempt_record_running(struct attempt *attempt);
/* Records that it ended, as attempt->end and ->failed say. */
void attempt_record_end(struct attempt *attempt);
/* Reports that something could not be done as asked. */
void attempt_note(const struct attempt *attempt, const char *text);
