/* Tasks that run a schedule within a team of ranks. Layer: comm; see exchange.c.
 *
 * A task's step does what can be done now and returns 1 (done), 0 (waiting) or a negative code
 * (failed). Only the holder of its lane steps a task.
 */
#pragma once

#include "comm/state/state.h"

/* Prepares an exchange within a team; the caller sets the rest of the plan, the buffers and the
 * reduce. */
void exchange_init(struct exchange *x, const struct team *team, enum schedule_pattern pattern,
                   size_t count, size_t unit, size_t capacity);
void exchange_start(struct muster_comm *comm, struct task *task, enum schedule_pattern pattern);
void exchange_start_uneven(struct muster_comm *comm, struct task *task);
/* Runs a step of one of several exchanges of a task; returns what a step of a task returns. */
int exchange_advance(struct muster_comm *comm, struct task *task, struct exchange *x,
                     struct muster_err *err);
