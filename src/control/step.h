/* A step in progress: what it has seen, the status that it makes, the state that this status
 * tells, and the job's clock.
 *
 * Layer: pure. Ownership: the step borrows all but `status` and `events`, which its maker
 * frees.
 */
#pragma once

#include "control/counters.h"
#include "control/observe.h"

/* Read from the conditions: there is no other state. */
enum control_state {
    CONTROL_STATE_NEW,
    CONTROL_STATE_CREATED,
    CONTROL_STATE_RUNNING,
    CONTROL_STATE_RESTARTING,
    CONTROL_STATE_SUSPENDED,
    CONTROL_STATE_SUCCEEDED,
    CONTROL_STATE_FAILED,
};

/* A set of states: bits. */
#define CONTROL_STATE_BIT(state) (1u << CONTROL_STATE_##state)
#define CONTROL_ACTIVE                                                                             \
    (CONTROL_STATE_BIT(CREATED) | CONTROL_STATE_BIT(RUNNING) | CONTROL_STATE_BIT(RESTARTING))

/* One look at a job, while it is worked out. */
struct control_step {
    const struct control_observed *o;
    struct control_counters *counters;
    int64_t now_unix_ms;
    json_t *status;                /* the new one, made from the old */
    struct control_effects events; /* due once the status is written */
    bool started;                  /* startTime is this step's */
    bool ended;                    /* completionTime is */
    bool restarts;                 /* all ranks begin anew */
    int r;                         /* 0, or MUSTER_ENOMEM */
};

enum control_state control_state_of(const json_t *status);
bool control_is_active(enum control_state state);

/* The job's clock starts, or starts again; and stops. */
void control_start_clock(struct control_step *step);
void control_stop_clock(struct control_step *step);

/* completionTime to the millisecond; TIMESTAMP_NONE when it has none. */
int64_t control_ended_at(const struct control_step *step);

/* When the deadline ends an active job; INT64_MAX for never. */
int64_t control_deadline(const struct control_step *step);
