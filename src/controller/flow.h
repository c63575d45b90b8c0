/* The effects of one step on their way: requests in phases, with a barrier after each (the job's
 * status, deletions, creations and updates, the job's own end), in parallel within a phase.
 *
 * It returns one by one what to send and what to report; the caller sends, and hands it the
 * answers. The first failure ends the flow, as soon as the requests under way are answered: a step
 * may be cut anywhere. If no write of the job precedes creations, the job is read before them: the
 * job in the cache may be out of date (it was just suspended, or deleted). If a name is taken, the
 * object is read: a live one of this job is a success, one that is being deleted is waited for, and
 * another owner's object is a refusal. Before a forced deletion its node is read, because it may be
 * back. After a failure (a full quota) one creation tries whether the others can succeed.
 *
 * Layer: pure. Ownership: flow_init/flow_done; it takes the effects and a reference to the job.
 */
#pragma once

#include "controller/expect.h"

enum { FLOW_PARALLEL = 32 };

struct flow_item;

enum flow_outcome {
    FLOW_OK,
    FLOW_AGAIN,  /* the cluster is newer than the view: try again soon */
    FLOW_FAILED, /* try again later */
};

struct flow {
    json_t *job; /* the job of the view, later as our own writes changed it */
    struct control_effects fx;
    struct expectations expected;
    struct flow_item *items;
    size_t count, next;
    int phase;
    size_t under_way;
    size_t tell, tell_end; /* the range of events that are due */
    size_t tell_one;       /* the event of an effect that was carried out; count: none */
    bool vouched;          /* a write of this step found the job in the version of the view */
    bool looking;          /* a read of the job is in progress */
    bool careful;          /* the previous step failed: one creation first, then the others */
    enum flow_outcome outcome;
    int code;               /* of the first failure */
    int64_t retry_after_ms; /* the delay that a server asked for */
    int64_t wake_unix_ms;   /* INT64_MAX: none */
};

/* What the caller must do now. */
enum flow_do {
    FLOW_WAIT,      /* for an answer */
    FLOW_SEND,      /* send effect number `item` */
    FLOW_LOOK,      /* get the object of effect `item` */
    FLOW_LOOK_JOB,  /* get the job */
    FLOW_LOOK_NODE, /* get the node for whose loss effect `item` deletes by force */
    FLOW_TELL,      /* send effect number `item`, an event */
    FLOW_END,       /* all is answered: see outcome; expectations may still be open */
};

/* Takes over the content of `fx`. Returns MUSTER_ENOMEM. */
int flow_init(struct flow *flow, json_t *job, struct control_effects *fx);
void flow_done(struct flow *flow);

enum flow_do flow_next(struct flow *flow, size_t *ret_item);

struct flow_answer {
    int code;
    bool unsure;
    bool explained; /* a server gave the reason */
    int64_t retry_after_ms;
    json_t *object; /* borrowed; NULL: none */
    bool is_shown; /* the cache shows the result: a deleted object is gone, an updated one is new */
    bool was_shown; /* for creations and deletions: it showed the result before the request */
};

/* What the caller reports of an answer. After each answer, call flow_next until it returns
 * FLOW_WAIT. */
enum flow_told { FLOW_SILENT, FLOW_REFUSED, FLOW_STRANGER };

enum flow_told flow_answered(struct flow *flow, size_t item, const struct flow_answer *answer);
enum flow_told flow_looked(struct flow *flow, size_t item, const struct flow_answer *answer);
/* Whether the effect was carried out, or was found to be done. */
bool flow_is_done(const struct flow *flow, size_t item);
void flow_looked_at_job(struct flow *flow, const struct flow_answer *answer);
void flow_looked_at_node(struct flow *flow, size_t item, const struct flow_answer *answer);

/* The request cannot be sent (no memory): counts as an answer with that code. */
void flow_not_sent(struct flow *flow, int code);

/* ---- shared by flow.c, which sends, and flow_answer.c, which handles answers ---- */

enum flow_phase { STATUS, NEWS, DELETES, CREATES, END, PHASES }; /* CREATES: also updates */

enum flow_state {
    WAITING,
    TAKEN, /* its name is taken: a look is due */
    LOST,  /* its node is still lost */
    SENT,
    DONE,
    REFUSED,
};

/* One for each effect; events and wake-ups are DONE from the start. */
struct flow_item {
    enum flow_phase phase;
    enum flow_state state;
    int expectation;
};

/* Ends the flow; of several outcomes the worst counts, of several codes the first. */
void flow_fail(struct flow *flow, enum flow_outcome outcome, int code, int64_t retry_after_ms);
