/* The inside of struct pod, which the machine, its restoring and its status share. Not for use
 * outside src/pod.
 *
 * Layer: pure.
 */
#pragma once

#include "pod/pod.h"

enum { POD_REASON_BYTES = 64, POD_MESSAGE_BYTES = 512, POD_TEXT_BYTES = 256 };

enum container_state {
    CONTAINER_WAITING,  /* not started, or waits until its back-off is over */
    CONTAINER_STARTING, /* START was issued */
    CONTAINER_RUNNING,
    CONTAINER_TERMINATED, /* for good, unless it will be restarted */
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

/* How a container was asked to end, mildest first; it is asked in each way only once. */
enum pod_asked { POD_ASKED_NOTHING, POD_ASKED_INT, POD_ASKED_TERM, POD_ASKED_KILL };

enum pod_restart { POD_RESTART_ALWAYS, POD_RESTART_ON_FAILURE, POD_RESTART_NEVER };

struct container {
    const json_t *spec;
    const char *name;
    bool init;
    enum container_state state;
    int attempt;  /* the current one; if WAITING and not crashed, the next one */
    bool crashed; /* WAITING: `attempt` has ended, attempt + 1 starts at not_before */
    char reason[POD_REASON_BYTES]; /* WAITING: why; "" for the usual reason */
    char message[POD_MESSAGE_BYTES];
    int64_t started_unix_ms;
    int64_t not_before_unix_ms;
    enum pod_restart restart;  /* the container's own if it has restart rules, else the pod's */
    int64_t peak_memory_bytes; /* of all attempts that have ended */
    int crashes;               /* how many in a row, for the back-off */
    int start_retries;         /* of an attempt that could not start */
    struct container_end end;  /* TERMINATED: the end of this attempt */
    struct container_end last; /* the end of the attempt before */
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
    bool held; /* until SCHEDULED or ADOPTED: decides nothing, as records may still come */
    bool scheduled;
    bool deleting;
    bool ending; /* no restarts any more: deleted, past its deadline, or lost */
    int64_t start_unix_ms;
    int64_t term_at_unix_ms;       /* ending: when TERM is sent, if INT was sent first */
    int64_t kill_at_unix_ms;       /* ending: when KILL is sent */
    char reason[POD_REASON_BYTES]; /* of the whole pod: DeadlineExceeded … */
    char message[POD_MESSAGE_BYTES];
    bool conditions[POD_CONDITIONS];
    int64_t turned_unix_ms[POD_CONDITIONS];
    char waits_for[POD_MESSAGE_BYTES]; /* why it is not scheduled */
    bool gone;
};

enum pod_phase { POD_PHASE_PENDING, POD_PHASE_RUNNING, POD_PHASE_SUCCEEDED, POD_PHASE_FAILED };

/* ---- state.c: questions about the present state ---- */

enum pod_phase pod_phase(const struct pod *pod);
/* Whether it has a process, or may have one soon. */
bool pod_is_live(const struct container *c);
bool pod_any_live(const struct pod *pod);
bool pod_init_done(const struct pod *pod);
/* Whether an attempt that ended with `code` is followed by another. */
bool pod_restarts(const struct pod *pod, const struct container *c, int code);
/* Whether the condition is true now; pod->conditions has the values at the last status. */
bool pod_condition_now(const struct pod *pod, enum pod_condition condition);

/* ---- events.c ---- */

/* Takes the event into the state; decides nothing. */
void pod_take(struct pod *pod, const struct pod_event *event);

/* Ends the pod: nothing is restarted any more, and running containers have `grace_ms` to end. With
 * `interrupt` they get INT at once and TERM after half of that time, otherwise TERM at once. A
 * later call may only shorten the time. */
void pod_end(struct pod *pod, int64_t at_unix_ms, int64_t grace_ms, bool interrupt);

/* ---- restore.c ---- */

/* Takes the state from the status that a former agent wrote; the records are fed in afterwards. */
void pod_restore(struct pod *pod);

/* ---- qos.c ---- */

const char *pod_qos_class(const struct pod *pod);
