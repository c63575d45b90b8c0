/* When a task should stop waiting: a peer died, fell silent, closed, or calls something else.
 * Layer: comm; see failure.c. */
#pragma once

#include "comm/state/state.h"

/* 0, or why this task cannot be waited for any longer: the rank that it waits for is gone or does
 * something else. */
int failure_check(struct muster_comm *comm, const struct task *task, struct muster_err *err);
/* The rank that the task waits for will not come, or another one that it needs. */
bool failure_is_gone(const struct muster_comm *comm, const struct task *task);
int failure_timeout(struct muster_comm *comm, const struct task *task, int64_t waited_ms,
                    struct muster_err *err);
/* One line on stderr about those that have not entered it yet; nothing when all have. */
void failure_notice(struct muster_comm *comm, const struct task *task, int64_t waited_ms);
/* Compares the records of that many calls before this one, as far as they exist: that rank of the
 * same host and this one called the same. Else MUSTER_EMISMATCH. */
int failure_compare(struct muster_comm *comm, const struct task *task, int rank, uint64_t calls,
                    struct muster_err *err);
/* Rank does something else than this task, or did before. */
int failure_mismatch(struct muster_comm *comm, const struct task *task, int rank,
                     struct muster_err *err);
/* Closes this rank's side for good; the first code stays. */
void failure_close(struct muster_comm *comm, int code);
/* The same, in good order: nothing is under way. */
void failure_leave(struct muster_comm *comm);
/* Runs on the heartbeat thread. */
void failure_beat(void *comm);
