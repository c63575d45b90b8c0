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
    AGENT_SEEN,             /* what the store has under a key: `seen`; an answer to a look */
    AGENT_ADMITTED,         /* pod: answer to ADMIT */
    AGENT_REFUSED,          /* pod: another answer to ADMIT: it is tried again later */
    AGENT_SUPERVISOR_READY, /* job: the records of its earlier attempts were all told */
    AGENT_SUPERVISOR_LOST,  /* job: the supervisor is gone, and all processes with it */
    AGENT_SUPERVISOR_ENDED, /* job: it has ended as it was asked to */
    AGENT_NEWS,       /* pod: something that its machine is to be fed (a start, an exit, a timer) */
    AGENT_FED,        /* pod: answer to FEED: finished, gone, status */
    AGENT_PLACED,     /* pod: answer to PLACE */
    AGENT_NOT_PLACED, /* pod: another: there is no room */
    AGENT_ROOM_MADE,  /* some pod has given GPUs back, or the node takes pods again */
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
    int64_t grace_s; /* AGENT_FEED_DELETE */
    int64_t deadline_unix_ms;
};

struct agent_effects {
    struct agent_effect *list;
    size_t count;
    size_t room;
};
