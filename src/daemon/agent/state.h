/* The pods and jobs that the agent manages and the step decides about, and the effects of the
 * current step.
 *
 * Layer: program (daemon), private to the agent; pure. Ownership: agent_state_init/done.
 */
#pragma once

#include "daemon/agent/events.h"

#include <uthash.h>

enum agent_pod_state {
    AGENT_POD_ADMITTING,
    AGENT_POD_ADOPTING,
    AGENT_POD_ADOPTED,
    AGENT_POD_PLACING,
    AGENT_POD_WAITING,
    AGENT_POD_PLACED,
    AGENT_POD_KEEPING,
    AGENT_POD_REMOVING,
    AGENT_POD_STATES,
};

enum agent_job_state {
    AGENT_JOB_OPENING,
    AGENT_JOB_STARTING,
    AGENT_JOB_READY,
    AGENT_JOB_ENDING,
    AGENT_JOB_OVER,
    AGENT_JOB_STATES,
};

struct step_job {
    int64_t number;
    char *uid;
    enum agent_job_state state;
    size_t pods;
    UT_hash_handle hh;
};

struct step_pod {
    int64_t number;
    char *uid;
    char *key;
    struct step_job *job;
    enum agent_pod_state state;
    bool deleting;
    int64_t grace_s; /* of the deletion that was told last; a shorter one may follow */
    int64_t deadline_unix_ms;
    bool finished;
    bool gone;
    bool owes_status;
    bool owes_removal;
    bool told_waits;
    UT_hash_handle hh;
};

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

/* How many pods are looked after. */
size_t agent_state_pods(const struct agent_state *state);
/* The number of a pod that is looked after; 0: it is not. */
int64_t agent_state_find(const struct agent_state *state, const char *pod_uid);
/* Whether the supervisor may run something: false for a number that is not known. */
bool agent_state_job_runs(const struct agent_state *state, int64_t job);

/* NULL, or which invariant is violated. Holds between steps; tests ask after each. */
const char *agent_state_check(const struct agent_state *state);

/* ---- States: for step.c ---- */

/* Asserts that the table of states (step.h) has this way. */
void step_become(struct step_pod *pod, enum agent_pod_state next);
bool step_is_over(const struct step_pod *pod);
/* The supervisor is on its way out, or gone: no pod enters. */
bool step_is_leaving(const struct step_job *job);

/* ---- Who is looked after ---- */

/* The pod of that number; NULL: forgotten, or never known. */
struct step_pod *step_pod_of(const struct agent_state *state, int64_t number);
struct step_job *step_job_of(const struct agent_state *state, int64_t number);
/* A new pod, in its job, which is made at its first one. NULL: no memory, it is tried again. */
struct step_pod *step_take_in(struct agent_state *state, const struct agent_seen *seen);
/* When its job has no pods left, the supervisor is ended. */
void step_forget_pod(struct agent_state *state, struct step_pod *pod);
/* It has no pods, and its supervisor is gone. */
void step_close_job(struct agent_state *state, struct step_job *job);

/* ---- Effects ---- */

void step_emit(struct agent_state *state, struct agent_effect effect);
void step_emit_of(struct agent_state *state, enum agent_effect_kind kind,
                  const struct step_pod *pod);
void step_feed(struct agent_state *state, const struct step_pod *pod, enum agent_food food);
void step_retry_soon(struct agent_state *state);
