/* Makes a task of a prepared call: numbers and signs it, and chooses its algorithm. Layer: comm;
 * see call.c.
 */
#pragma once

#include "comm/state/state.h"
#include "schedule/choose.h"

/* Begins a task, whose call must be prepared (prepare.h). */
void call_begin(struct muster_comm *comm, struct task *task);
/* Chooses the algorithm for an all-reduce. */
struct schedule_choice call_choose(const struct muster_comm *comm, size_t bytes,
                                   bool shared_memory);
/* Begins an all-reduce through staging, wherever the buffers are. */
void call_go_private(struct muster_comm *comm, struct task *task);
