/* The step's vocabulary: events, which say what has happened, and effects, which say what is to be
 * done.
 *
 * Layer: program (daemon), private to the agent; pure. Ownership: texts are borrowed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum agent_event_kind {
    AGENT_SEEN,             /* what the store has under a key: `seen`; the answer to a look */
    AGENT_ADMITTED,         /* pod: answer to ADMIT */
    AGENT_REFUSED,          /* pod: the other answer to ADMIT: it failed and is tried again later */
    AGENT_SUPERVISOR_READY, /* job: all records of its earlier attempts were reported */
    AGENT_SUPERVISOR_LOST,  /* job: the supervisor and all its processes are gone */
    AGENT_SUPERVISOR_ENDED, /* job: the supervisor has ended, as it was asked to */
    AGENT_NEWS,             /* pod: an event for its machine (a start, an exit, a timer) */
    AGENT_FED,              /* pod: answer to FEED: finished, gone, status */
    AGENT_PLACED,           /* pod: answer to PLACE */
    AGENT_NOT_PLACED,       /* pod: the other answer to PLACE: there is no room */
    AGENT_ROOM_MADE,        /* a pod has given GPUs back, or the node accepts pods again */
    AGENT_WROTE,            /* pod: answer to WRITE: status */
    AGENT_KEPT,             /* pod: answer to KEEP */
    AGENT_REMOVED,          /* pod: answer to REMOVE: settled */
    AGENT_RETRY,            /* the time has come to try again what failed */
    AGENT_EVENT_KINDS,
};

/* What happened to a status: it did not change, the store has taken it, or it must still be
 * written. */
enum agent_status { AGENT_STATUS_SAME, AGENT_STATUS_TAKEN, AGENT_STATUS_OWED };

/* A pod's object in the store. */
struct agent_seen {
    const char *key; /* "namespace/name" */
    const char *uid; /* NULL: there is no object with this name */
    const char *job; /* the uid under which its job's supervisor is known */
    bool over;       /* Succeeded or Failed */
    bool deleting;
    bool may_have_run;
    int64_t grace_s;          /* deleting */
    int64_t deadline_unix_ms; /* deleting: end of the deletion's first grace period;
                                 TIMESTAMP_NONE */
};

/* Pods and jobs have numbers, which are never used again: an event about a pod that was forgotten
 * finds no pod. */
struct agent_event {
    enum agent_event_kind kind;
    int64_t pod;
    int64_t job;
    struct agent_seen seen;
    bool finished;            /* FED: Succeeded or Failed, and no process is left */
    bool gone;                /* FED: deleted, and no process is left */
    enum agent_status status; /* FED, WROTE */
    bool settled;             /* REMOVED: the removal is done, or is not needed any more */
};

enum agent_effect_kind {
    AGENT_ADMIT,      /* pod, job: bind the pod of SEEN, make its machine, open its job */
    AGENT_DISCARD,    /* remove the object of SEEN, for which nothing runs */
    AGENT_FEED,       /* pod: feed its machine with `feed` */
    AGENT_PLACE,      /* pod: reserve its GPUs */
    AGENT_TELL_WAITS, /* pod: tell its user what it waits for */
    AGENT_WRITE,      /* pod: write its status again */
    AGENT_KEEP,       /* pod: write down its object and status, for its logs */
    AGENT_REMOVE,     /* pod: remove its object */
    AGENT_LET_GO,     /* pod: release its GPUs, its folder, its machine */
    AGENT_END_JOB,    /* job: ask the supervisor to end */
    AGENT_CLOSE_JOB,  /* job: close its supervisor; then look at all pods of the job */
    AGENT_RETRY_SOON, /* post RETRY after a while */
    AGENT_LOOK_AGAIN, /* look at every pod of the store, and at every pod that the agent manages */
};

/* Kinds of events that a pod's machine is fed with. */
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
    int64_t grace_s; /* AGENT_FEED_DELETE */
    int64_t deadline_unix_ms;
};

struct agent_effects {
    struct agent_effect *list;
    size_t count;
    size_t room;
};
