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
    const char *folder;      /* JOBDIR; made if it is missing */
    const char *runner;      /* identity of the `muster run` that leases the job, NULL: none
                                (identity_text) */
    bool private_network;    /* a network namespace for all ranks of the job, with a loopback of its
                                own */
    const char *program;     /* the muster binary; NULL: this one */
    const char *cgroup_root; /* NULL: /sys/fs/cgroup */
    const char *isolation;   /* NULL: the best that is permitted; "subreaper": no namespaces */
};

struct process_exit {
    int code;   /* 128 + signal if a signal killed it */
    int signal; /* 0 if it exited */
    bool oom;   /* it was killed because of its memory limit */
    int64_t started_unix_ms;
    int64_t at_unix_ms;
    int64_t peak_memory_bytes; /* 0: not known */
    const char *reason;        /* "Completed", "Error", "OOMKilled", "Lost" */
    const char *message;       /* "" or a sentence */
};

/* All functions are called from the loop, with the `data` of process_job_open. */
struct process_events {
    void (*started)(void *data, const char *id, int64_t at_unix_ms);
    void (*exited)(void *data, const char *id, const struct process_exit *exit);
    /* The attempt never ran: code 127 (not found), 126 (not executable), 128 (cannot be set up:
     * mounts, folder …). */
    void (*start_failed)(void *data, const char *id, int code, const char *reason,
                         const char *message);
    /* Something could not be done as asked ("cgroups are not writable: limits are not applied");
     * called once for each such thing. `reason` is that of the event that reports it. */
    void (*note)(void *data, const char *id, const char *reason, const char *text);
    /* The attempt has been idle for longer than its spec allows: "rank 1 has …"; called once in
     * each stall. */
    void (*stalled)(void *data, const char *id, const char *text);
    /* The answer to process_job_stacks. */
    void (*stacks)(void *data, int64_t ticket, const json_t *attempts);
    /* Every record of earlier attempts has been reported: the caller may go on. Called once. */
    void (*ready)(void *data);
    /* The supervisor is gone (killed, the machine restarted, or none can be started) and every
     * process with it. Attempts that were running are recorded as lost: a later process_job_open
     * reports them as exited, code 137, reason "Lost". This is the last call: close the job. */
    void (*lost)(void *data, const char *why);
    /* All attempts have ended after process_job_end. This is the last call. */
    void (*ended)(void *data);
};

int process_job_open(uv_loop_t *loop, const struct process_job_options *options,
                     const struct process_events *events, void *data, struct process_job **ret,
                     struct muster_err *err);

/* spec: see process/wire/spec.h. An id that was started before is not started again: its records
 * are reported. */
int process_job_start(struct process_job *job, const char *id, const json_t *spec,
                      struct muster_err *err);

/* Sends the signal to all processes of the attempt; "POD/" means every attempt of a pod. Succeeds
 * also if none is left. */
int process_job_signal(struct process_job *job, const char *id, int signal, struct muster_err *err);

/* Writes where the attempt's processes are into its log, unless this is in the log already, within
 * a second; then sends the signal, if it is not 0. The id "" means all attempts of the job. */
int process_job_explain(struct process_job *job, const char *id, int signal,
                        struct muster_err *err);

/* Asks where the processes of all running attempts are (process/stack/stacks.h). `stacks` is called
 * with the answer within sample_ms, during which processor time is measured, and one second more. A
 * supervisor that was started by an older muster does not answer. */
int process_job_stacks(struct process_job *job, int64_t ticket, int64_t sample_ms,
                       struct muster_err *err);

/* Sends SIGTERM to everything, and SIGKILL after grace_ms; then the supervisor ends. */
int process_job_end(struct process_job *job, int64_t grace_ms, struct muster_err *err);

/* Only disconnects: the supervisor and its processes continue. Run the loop once more after this.
 * `job` may be NULL. */
void process_job_close(struct process_job *job);
