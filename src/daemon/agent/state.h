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
    int64_t grace_s; /* of the last deletion that was fed; a shorter one may follow */
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
    int64_t settling; /* the pod whose failed write or removal is being tried again; 0: none */
    struct agent_effects effects;
};

/* Returns false if out of memory. */
bool agent_state_init(struct agent_state *state);
void agent_state_done(struct agent_state *state);

/* Returns how many pods the agent manages. */
size_t agent_state_pods(const struct agent_state *state);
/* Returns the number of a managed pod; 0 if the pod is not managed. */
int64_t agent_state_find(const struct agent_state *state, const char *pod_uid);
/* Whether the supervisor may run something; false for an unknown number. */
bool agent_state_job_runs(const struct agent_state *state, int64_t job);

/* Returns NULL, or the invariant that is violated. Invariants hold between steps; tests check them
 * after each step. */
const char *agent_state_check(const struct agent_state *state);

/* ---- States: for step.c ---- */

/* Changes the state; asserts that the table of states (step.h) allows this change. */
void step_become(struct step_pod *pod, enum agent_pod_state next);
bool step_is_over(const struct step_pod *pod);
/* Whether the supervisor is ending or gone: then no pod may enter the job. */
bool step_is_leaving(const struct step_job *job);

/* ---- Managed pods and jobs ---- */

/* Returns the pod with this number; NULL if it was forgotten or never existed. */
struct step_pod *step_pod_of(const struct agent_state *state, int64_t number);
struct step_job *step_job_of(const struct agent_state *state, int64_t number);
/* Makes a pod in its job; the job is made for its first pod. Returns NULL if out of memory: then it
 * is tried again later. */
struct step_pod *step_take_in(struct agent_state *state, const struct agent_seen *seen);
/* Forgets the pod. If its job has no pods left, the supervisor is asked to end. */
void step_forget_pod(struct agent_state *state, struct step_pod *pod);
/* Closes a job that has no pods and whose supervisor is gone. */
void step_close_job(struct agent_state *state, struct step_job *job);

/* ---- Effects ---- */

void step_emit(struct agent_state *state, struct agent_effect effect);
void step_emit_of(struct agent_state *state, enum agent_effect_kind kind,
                  const struct step_pod *pod);
void step_feed(struct agent_state *state, const struct step_pod *pod, enum agent_food food);
void step_retry_soon(struct agent_state *state);
