/* A step in progress: what it has seen, the status that it makes, the state that this status
 * tells, and the job's clock.
 *
 * Layer: pure. Ownership: the step borrows all but `status` and `events`, which its maker
 * frees.
 */
#pragma once

#include "control/counters.h"
#include "control/observe.h"

/* The state is read from the conditions: it is stored nowhere else. */
enum control_state {
    CONTROL_STATE_NEW,
    CONTROL_STATE_CREATED,
    CONTROL_STATE_RUNNING,
    CONTROL_STATE_RESTARTING,
    CONTROL_STATE_SUSPENDED,
    CONTROL_STATE_SUCCEEDED,
    CONTROL_STATE_FAILED,
};

/* A bit of a set of states. */
#define CONTROL_STATE_BIT(state) (1u << CONTROL_STATE_##state)
#define CONTROL_ACTIVE                                                                             \
    (CONTROL_STATE_BIT(CREATED) | CONTROL_STATE_BIT(RUNNING) | CONTROL_STATE_BIT(RESTARTING))

/* One step of a job, while it is being computed. */
struct control_step {
    const struct control_observed *o;
    struct control_counters *counters;
    int64_t now_unix_ms;
    json_t *status;                /* the new status, made from the old one */
    struct control_effects events; /* due once the status is written */
    bool started;                  /* this step set startTime */
    bool ended;                    /* this step set completionTime */
    bool restarts;                 /* all ranks are started again */
    int r;                         /* 0, or MUSTER_ENOMEM */
};

enum control_state control_state_of(const json_t *status);
bool control_is_active(enum control_state state);

/* Start the job's clock, possibly again, and stop it. */
void control_start_clock(struct control_step *step);
void control_stop_clock(struct control_step *step);

/* Returns completionTime to the millisecond; TIMESTAMP_NONE if there is none. */
int64_t control_ended_at(const struct control_step *step);

/* Returns when the deadline ends an active job; INT64_MAX for never. */
int64_t control_deadline(const struct control_step *step);
