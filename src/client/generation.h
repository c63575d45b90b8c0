/* The user's thread follows the generations: it forms their communicators, and has the state loaded
 * or restored.
 *
 * Layer: worker (part of libmuster). Thread: the user's; the job's mutex is held, and let go while
 * something is waited for.
 */
#pragma once

#include "client/worker.h"

/* Waits until this worker can work on step core.version + 1: 1. 0: it cannot: job->end says why, or
 * todo.apply: a step is to be handed out first. Negative: an error of the user's. */
int generation_ready(struct muster_elastic *job, struct muster_err *err);

/* The passes of step core.version + 1 that each rank of the generation computes, and this worker.
 */
void generation_shares(const struct muster_elastic *job, struct plan_share *ret);
struct plan_share generation_share(const struct muster_elastic *job);
/* Whether shares change once that step is committed: by how long each rank takes for a pass, so
 * that all decide the same. The caller does not hold the mutex. */
void generation_balance(struct muster_elastic *job, uint64_t version, const uint64_t *pass_ns);

/* The next records of a micro-batch that are computed together, after its first `done`: all of
 * them, unless workers have died of some. */
struct shard_range generation_part(const struct muster_elastic *job, struct shard_range micro_batch,
                                   uint32_t done);

/* How many of the positions have a record that is trained: not set aside. */
uint32_t generation_records(const struct muster_elastic *job, struct shard_range range);
/* The first micro-batch of this worker's passes that it is to compute; or span.first + span.count.
 */
uint32_t generation_missing(const struct muster_elastic *job);
/* Fills in, as zeros, those of its passes of which every record is set aside. */
void generation_fill(struct muster_elastic *job);

/* See muster_elastic_ahead. */
size_t generation_ahead(struct muster_elastic *job, size_t passes, uint64_t *ret_records,
                        size_t room, size_t *ret_counts);

/* Makes room in job->extras for any step of the plan. MUSTER_ENOMEM. */
int generation_make_room(struct muster_elastic *job, const struct plan *plan,
                         struct muster_err *err);
/* Ends the communicator. */
void generation_leave(struct muster_elastic *job);
