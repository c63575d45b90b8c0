/* When a task should stop waiting: a peer died, fell silent, closed, or calls something else.
 * Layer: comm; see failure.c. */
#pragma once

#include "comm/state/state.h"

/* Returns 0, or why the task must not wait any longer: the rank that it waits for is gone or does
 * something else. */
int failure_check(struct muster_comm *comm, const struct task *task, struct muster_err *err);
/* Whether the rank that the task waits for, or another one that it needs, will not come. */
bool failure_is_gone(const struct muster_comm *comm, const struct task *task);
int failure_timeout(struct muster_comm *comm, const struct task *task, int64_t waited_ms,
                    struct muster_err *err);
/* Prints one line on stderr about the ranks that have not entered the call yet; nothing if all
 * have. */
void failure_notice(struct muster_comm *comm, const struct task *task, int64_t waited_ms);
/* Compares the records of this many calls before this one, as far as they exist, with those of a
 * rank of the same host. Returns MUSTER_EMISMATCH if the two ranks called something different. */
int failure_compare(struct muster_comm *comm, const struct task *task, int rank, uint64_t calls,
                    struct muster_err *err);
/* Fails because this rank does something else than this task, or did so before. */
int failure_mismatch(struct muster_comm *comm, const struct task *task, int rank,
                     struct muster_err *err);
/* Closes this rank's side for good; the first code is kept. */
void failure_close(struct muster_comm *comm, int code);
/* Does the same in good order: nothing is under way. */
void failure_leave(struct muster_comm *comm);
/* Called on the heartbeat thread. */
void failure_beat(void *comm);
