/* Processes of a job: the controller's side of the per-job supervisor.
 *
 * The supervisor owns all that must survive the controller: pipes, logs, exit records, the PID
 * namespace. This client starts one, or adopts the one that lives, and turns its messages into
 * events. Every attempt's events are replayed at adoption, so they are idempotent by id.
 *
 * An id names one attempt of one container: "POD/CONTAINER/ATTEMPT"; it is also the attempt's
 * folder, JOBDIR/containers/POD/CONTAINER/ATTEMPT/ (spec.json, started.json, exit.json, N.log). POD
 * must be unique over the job's life: a pod that is made again has its name again, so use its uid.
 *
 * Layer: services. Thread: the loop's; nothing blocks but the start of a supervisor (a few ms). The
 * program ignores SIGPIPE.
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct process_job;

struct process_job_options {
    const char *folder;      /* JOBDIR; made when missing */
    const char *runner;      /* identity of the `muster run` that leases the job, NULL: none
                                (identity_text) */
    bool private_network;    /* a network namespace for all ranks of the job, with a loopback of its
                                own */
    const char *program;     /* the muster binary; NULL: this one */
    const char *cgroup_root; /* NULL: /sys/fs/cgroup */
    const char *isolation;   /* NULL: the best that is permitted; "subreaper": no namespaces */
};

struct process_exit {
    int code;   /* 128 + signal for a killed one */
    int signal; /* 0 for one that exited */
    bool oom;   /* its memory limit killed it */
    int64_t started_unix_ms;
    int64_t at_unix_ms;
    int64_t peak_memory_bytes; /* 0: not known */
    const char *reason;        /* "Completed", "Error", "OOMKilled", "Lost" */
    const char *message;       /* "" or a sentence */
};

/* All called from the loop, with the `data` of process_job_open. */
struct process_events {
    void (*started)(void *data, const char *id, int64_t at_unix_ms);
    void (*exited)(void *data, const char *id, const struct process_exit *exit);
    /* Never ran: code 127 (not found), 126 (not executable), 128 (cannot be set up: mounts, folder
     * …). */
    void (*start_failed)(void *data, const char *id, int code, const char *reason,
                         const char *message);
    /* Something is not as asked ("cgroups are not writable: limits are not applied"); once each, by
     * the reason of the event that says so. */
    void (*note)(void *data, const char *id, const char *reason, const char *text);
    /* It does nothing, for longer than its spec allows: "rank 1 has …", once in each stall. */
    void (*stalled)(void *data, const char *id, const char *text);
    /* What process_job_stacks asked for. */
    void (*stacks)(void *data, int64_t ticket, const json_t *attempts);
    /* Every record of earlier attempts has been told: carry on. Once. */
    void (*ready)(void *data);
    /* The supervisor is gone (killed, the machine restarted, or none can be started) and every
     * process with it. What was running is recorded as lost: a later process_job_open tells it as
     * exited, code 137, reason "Lost". Final: close. */
    void (*lost)(void *data, const char *why);
    /* All ended after process_job_end. Final. */
    void (*ended)(void *data);
};

int process_job_open(uv_loop_t *loop, const struct process_job_options *options,
                     const struct process_events *events, void *data, struct process_job **ret,
                     struct muster_err *err);

/* spec: see process/wire/spec.h. An id that was started before is not started again: its records
 * are told. */
int process_job_start(struct process_job *job, const char *id, const json_t *spec,
                      struct muster_err *err);

/* Sends the signal to all processes of the attempt; "POD/" means every attempt of a pod. None left
 * is success. */
int process_job_signal(struct process_job *job, const char *id, int signal, struct muster_err *err);

/* Writes what they are in into their logs, unless that is there already, within a second; then the
 * signal is sent, if it is not 0. The id "" means all attempts of the job. */
int process_job_explain(struct process_job *job, const char *id, int signal,
                        struct muster_err *err);

/* What the processes of all running attempts are in (process/stack/stacks.h): answered by `stacks`
 * within sample_ms, over which processor time is measured, and a second. A supervisor that was
 * started by an older muster does not answer. */
int process_job_stacks(struct process_job *job, int64_t ticket, int64_t sample_ms,
                       struct muster_err *err);

/* Everything gets SIGTERM, after grace_ms SIGKILL; then the supervisor leaves. */
int process_job_end(struct process_job *job, int64_t grace_ms, struct muster_err *err);

/* Lets go: the supervisor and its processes go on. Run the loop once more after this. NULL is fine.
 */
void process_job_close(struct process_job *job);
