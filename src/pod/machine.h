/* The inside of struct pod, which the machine, its restoring and its status share. Not for use
 * outside src/pod.
 *
 * Layer: pure.
 */
#pragma once

#include "pod/pod.h"

enum { POD_REASON_BYTES = 64, POD_MESSAGE_BYTES = 512, POD_TEXT_BYTES = 256 };

enum container_state {
    CONTAINER_WAITING,  /* not started, or down until its back-off is over */
    CONTAINER_STARTING, /* START was issued */
    CONTAINER_RUNNING,
    CONTAINER_TERMINATED, /* for good, unless it is to be restarted */
};

/* How one attempt ended. */
struct container_end {
    bool known;
    int attempt;
    int code;
    char reason[POD_REASON_BYTES];
    char message[POD_MESSAGE_BYTES];
    int64_t started_unix_ms;
    int64_t finished_unix_ms;
    int64_t peak_memory_bytes; /* 0: not known */
};

/* How a container was asked to end, from the mildest; each only once. */
enum pod_asked { POD_ASKED_NOTHING, POD_ASKED_INT, POD_ASKED_TERM, POD_ASKED_KILL };

enum pod_restart { POD_RESTART_ALWAYS, POD_RESTART_ON_FAILURE, POD_RESTART_NEVER };

struct container {
    const json_t *spec;
    const char *name;
    bool init;
    enum container_state state;
    int attempt;                   /* the current one, or the next while WAITING before it */
    bool crashed;                  /* WAITING: attempt has ended, attempt + 1 comes at not_before */
    char reason[POD_REASON_BYTES]; /* WAITING: why, "" for the usual */
    char message[POD_MESSAGE_BYTES];
    int64_t started_unix_ms;
    int64_t not_before_unix_ms;
    enum pod_restart restart;  /* its own where it has rules of its own, else the pod's */
    int64_t peak_memory_bytes; /* of all attempts that have ended */
    int crashes;               /* in a row, for the back-off */
    int start_retries;         /* of the attempt that could not start */
    struct container_end end;  /* TERMINATED: this attempt's */
    struct container_end last; /* the attempt before */
    enum pod_asked asked;
};

enum pod_condition {
    POD_INITIALIZED,
    POD_READY,
    POD_CONTAINERS_READY,
    POD_HAS_NODE,
    POD_CONDITIONS
};

struct pod {
    json_t *object;
    char node_name[POD_TEXT_BYTES];
    char host_ip[POD_TEXT_BYTES];
    char pod_ip[POD_TEXT_BYTES];
    struct container containers[POD_CONTAINERS_MAX];
    size_t count;
    size_t init_count;
    enum pod_restart restart;
    int64_t grace_ms;
    int64_t deadline_ms; /* activeDeadlineSeconds; 0: none */
    bool held;           /* until SCHEDULED or ADOPTED: records may still come, decide nothing */
    bool scheduled;
    bool deleting;
    bool ending; /* no restarts: deleted, past its deadline, or lost */
    int64_t start_unix_ms;
    int64_t term_at_unix_ms;       /* ending: when INT becomes TERM */
    int64_t kill_at_unix_ms;       /* and when TERM becomes KILL */
    char reason[POD_REASON_BYTES]; /* of the pod as a whole: DeadlineExceeded … */
    char message[POD_MESSAGE_BYTES];
    bool conditions[POD_CONDITIONS];
    int64_t turned_unix_ms[POD_CONDITIONS];
    char waits_for[POD_MESSAGE_BYTES]; /* not scheduled: why */
    bool gone;
};

enum pod_phase { POD_PHASE_PENDING, POD_PHASE_RUNNING, POD_PHASE_SUCCEEDED, POD_PHASE_FAILED };

/* ---- state.c: what is so ---- */

enum pod_phase pod_phase(const struct pod *pod);
/* Has its process, or may have it soon. */
bool pod_is_live(const struct container *c);
bool pod_any_live(const struct pod *pod);
bool pod_init_done(const struct pod *pod);
/* Should an attempt that ended with `code` be followed by another? */
bool pod_restarts(const struct pod *pod, const struct container *c, int code);
/* Is the condition true now, as opposed to when the status was last made? */
bool pod_condition_now(const struct pod *pod, enum pod_condition condition);

/* ---- events.c ---- */

/* What is known changes; nothing is decided. */
void pod_take(struct pod *pod, const struct pod_event *event);

/* Ends the pod: nothing is restarted any more, and what runs has `grace_ms` to end. With
 * `interrupt` it gets INT at once and TERM after half of that time, else TERM at once. A later
 * order may only shorten the time. */
void pod_end(struct pod *pod, int64_t at_unix_ms, int64_t grace_ms, bool interrupt);

/* ---- restore.c ---- */

/* What a former agent's status said, so that the records can be laid over it. */
void pod_restore(struct pod *pod);

/* ---- qos.c ---- */

const char *pod_qos_class(const struct pod *pod);
