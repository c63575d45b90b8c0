/* The user's thread follows the generations: it forms their communicators, and has the state loaded
 * or restored.
 *
 * Layer: worker (part of libmuster). Thread: the user's; the job's mutex is held, and let go while
 * something is waited for.
 */
#pragma once

#include "client/worker.h"

/* Waits until this worker can work on step core.version + 1, and returns 1. Returns 0 if it cannot:
 * job->end says why, or with todo.apply a step must be handed out first. Negative: an error for the
 * user. */
int generation_ready(struct muster_elastic *job, struct muster_err *err);

/* Returns the passes of step core.version + 1 that each rank of the generation computes, and those
 * of this worker. */
void generation_shares(const struct muster_elastic *job, struct plan_share *ret);
struct plan_share generation_share(const struct muster_elastic *job);
/* Decides whether shares change after that step, by the times that all ranks take for a pass, so
 * that all decide the same. The caller does not hold the mutex. */
void generation_balance(struct muster_elastic *job, uint64_t version, const uint64_t *pass_ns);

/* Returns the records of a micro-batch that are computed together next, after its first `done`: all
 * of them, unless workers have died of some. */
struct shard_range generation_part(const struct muster_elastic *job, struct shard_range micro_batch,
                                   uint32_t done);

/* Returns how many of the positions have a record that is trained, that is, not set aside. */
uint32_t generation_records(const struct muster_elastic *job, struct shard_range range);
/* Returns the first micro-batch of this worker's passes that it must still compute; span.first +
 * span.count if there is none. */
uint32_t generation_missing(const struct muster_elastic *job);
/* Fills in zeros for its passes whose records are all set aside. */
void generation_fill(struct muster_elastic *job);

/* See muster_elastic_ahead. */
size_t generation_ahead(struct muster_elastic *job, size_t passes, uint64_t *ret_records,
                        size_t room, size_t *ret_counts);

/* Makes room in job->extras for any step of the plan. MUSTER_ENOMEM. */
int generation_make_room(struct muster_elastic *job, const struct plan *plan,
                         struct muster_err *err);
/* Frees the communicator. */
void generation_leave(struct muster_elastic *job);
