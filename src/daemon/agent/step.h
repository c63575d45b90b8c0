/* What the agent decides: which pods of the store this machine looks after, when one gets its
 * GPUs, when it is done with, and when a job's supervisor is begun and ended.
 *
 * agent_step() is told one event and says what is to be done, in order (effects). What an effect
 * leads to (it worked, it failed) comes back as a later event: nothing is called back from within.
 * What a pod's containers do is decided by its own machine (pod/pod.h), which effects feed.
 *
 * A pod on this machine:
 *
 *     state      it                                       leaves it at
 *     ADMITTING  is bound, its machine is made, its job's  ADMITTED → ADOPTING; REFUSED → forgotten
 *                supervisor is reached
 *     ADOPTING   waits for the records of what ran before  SUPERVISOR_READY → ADOPTED
 *     ADOPTED    has been told them                        FED → PLACING (not when it is deleted)
 *     PLACING    asks for its GPUs                         PLACED → PLACED; NOT_PLACED → WAITING
 *     WAITING    has been told that too few are free       GPUS_FREED → PLACING
 *     PLACED     may run
 *     KEEPING    is over (from any state but ADMITTING);   KEPT → forgotten, REMOVING when deleted
 *                what is left of it is written down
 *     REMOVING   is over; its object is being removed      REMOVED → forgotten
 *
 * Over is who is gone (deleted, and nothing of it runs), or finished with a status that the store
 * has taken. What the store does not take (a full disk) is owed: RETRY tries again.
 *
 * A job's supervisor:
 *
 *     OPENING    no pod was admitted yet                   ADMITTED → STARTING
 *     STARTING   records are being told                    SUPERVISOR_READY → READY
 *     READY      pods run
 *     ENDING     its last pod left: it was asked to end    SUPERVISOR_ENDED or _LOST → closed
 *     OVER       it is gone, its pods are told; new pods   its last pod's end → closed
 *                wait until all of them have left
 *
 * A pod that comes while its job is ENDING or OVER is not admitted; when the job is closed, the
 * job's pods are looked at again.
 *
 * Layer: program (daemon); this part is pure: no clock, no store, no descriptor. Ownership:
 * agent_state_init/done; texts of events are borrowed for the call. Not thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum agent_event_kind {
    AGENT_SEEN,             /* what the store has under a key: `seen`; an answer to a look */
    AGENT_ADMITTED,         /* pod: answer to ADMIT */
    AGENT_REFUSED,          /* pod: another answer to ADMIT: it is tried again later */
    AGENT_SUPERVISOR_READY, /* job: the records of its earlier attempts were all told */
    AGENT_SUPERVISOR_LOST,  /* job: the supervisor is gone, and all processes with it */
    AGENT_SUPERVISOR_ENDED, /* job: it has ended as it was asked to */
    AGENT_NEWS,       /* pod: something that its machine is to be fed (a start, an exit, a timer) */
    AGENT_FED,        /* pod: answer to FEED: finished, gone, status */
    AGENT_PLACED,     /* pod: answer to PLACE */
    AGENT_NOT_PLACED, /* pod: another: too few GPUs are free */
    AGENT_GPUS_FREED, /* some pod has given GPUs back */
    AGENT_WROTE,      /* pod: answer to WRITE: status */
    AGENT_KEPT,       /* pod: answer to KEEP */
    AGENT_REMOVED,    /* pod: answer to REMOVE: settled */
    AGENT_RETRY,      /* time to try again what failed */
    AGENT_EVENT_KINDS,
};

/* What became of a status. */
enum agent_status { AGENT_STATUS_SAME, AGENT_STATUS_TAKEN, AGENT_STATUS_OWED };

/* A pod's object in the store. */
struct agent_seen {
    const char *key; /* "namespace/name" */
    const char *uid; /* NULL: there is no object of that name */
    const char *job; /* the uid under which its job's supervisor is known */
    bool over;       /* Succeeded or Failed */
    bool deleting;
    bool may_have_run;
    int64_t grace_s;          /* deleting */
    int64_t deadline_unix_ms; /* deleting: when the grace ends that it began with; TIMESTAMP_NONE */
};

/* Pods and jobs have numbers, which are never used again: news of one that was forgotten finds
 * nobody. */
struct agent_event {
    enum agent_event_kind kind;
    int64_t pod;
    int64_t job;
    struct agent_seen seen;
    bool finished;            /* FED: Succeeded or Failed, and no process left */
    bool gone;                /* FED: deleted, and no process left */
    enum agent_status status; /* FED, WROTE */
    bool settled;             /* REMOVED: it is done, or need not be done */
};

enum agent_effect_kind {
    AGENT_ADMIT,      /* pod, job: bind the pod of SEEN, make its machine, reach its supervisor */
    AGENT_DISCARD,    /* remove the object of SEEN: nothing runs for it */
    AGENT_FEED,       /* pod: feed its machine with `feed` */
    AGENT_PLACE,      /* pod: reserve its GPUs */
    AGENT_TELL_WAITS, /* pod: its user is told what it waits for */
    AGENT_WRITE,      /* pod: its status again */
    AGENT_KEEP,       /* pod: write down what is left of it */
    AGENT_REMOVE,     /* pod: its object */
    AGENT_LET_GO,     /* pod: its GPUs, its folder, its machine */
    AGENT_END_JOB,    /* job: ask the supervisor to end */
    AGENT_CLOSE_JOB,  /* job: let its supervisor go; then look at all pods of that job */
    AGENT_RETRY_SOON, /* give RETRY after a while */
    AGENT_LOOK_AGAIN, /* look at every pod that is looked after, and at every one of the store */
};

/* What a pod's machine is fed with. */
enum agent_food {
    AGENT_FEED_NEWS,
    AGENT_FEED_ADOPTED,
    AGENT_FEED_SCHEDULED,
    AGENT_FEED_DELETE,
    AGENT_FEED_LOST
};

struct agent_effect {
    enum agent_effect_kind kind;
    int64_t pod;
    int64_t job;
    enum agent_food food;
    int64_t grace_s; /* FEED_DELETE */
    int64_t deadline_unix_ms;
};

struct agent_effects {
    struct agent_effect *list;
    size_t count;
    size_t room;
};

struct step_pod;
struct step_job;

struct agent_state {
    struct step_pod *pods; /* by uid */
    struct step_job *jobs; /* by uid */
    int64_t last_number;
    int64_t settling; /* the pod whose debt RETRY is paying, 0: none */
    struct agent_effects effects;
};

/* False: no memory. */
bool agent_state_init(struct agent_state *state);
void agent_state_done(struct agent_state *state);

/* The effects are borrowed until the next step. */
const struct agent_effects *agent_step(struct agent_state *state, const struct agent_event *event);

/* How many pods are looked after. */
size_t agent_state_pods(const struct agent_state *state);
/* The number of a pod that is looked after; 0: it is not. */
int64_t agent_state_find(const struct agent_state *state, const char *pod_uid);
/* Whether the supervisor may run something: false of a number that is not known. */
bool agent_state_job_runs(const struct agent_state *state, int64_t job);

/* NULL, or which promise is broken. Holds between steps; tests ask after each. */
const char *agent_state_check(const struct agent_state *state);
