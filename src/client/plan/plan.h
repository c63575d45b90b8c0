/* Which records each step of an elastic job trains, and which worker computes them: a pure function
 * of the number of the step, so that no worker has to ask another process.
 *
 * Step v takes the positions that follow those of step v - 1: micro_batches times batch of them, or
 * the rest of the epoch. Where the global batch follows the number of workers (per_worker), the
 * generation's anchor says how many micro-batches a step has, and where the first step after its
 * version begins; earlier steps may not be asked for. The positions are cut into micro-batches of
 * `batch` positions (the last of an epoch may have fewer). A worker computes a contiguous range of
 * the step's micro-batches, by its rank among those that compute. docs/elastic.md says why records
 * are planned and not leased.
 *
 * Layer: pure (part of libmuster). Memory: the caller's. Thread: any.
 */
#pragma once

#include "shard/anchor.h"
#include "shard/order.h"
#include "shard/range.h"

#include <stdbool.h>
#include <stdint.h>

struct plan {
    uint64_t records;
    uint64_t seed;
    uint32_t epochs;
    uint32_t batch;         /* records of a micro-batch */
    uint32_t micro_batches; /* of a step; per_worker: for each worker of a generation */
    bool per_worker;
    struct shard_anchor anchor; /* per_worker: of the generation. later = 0: the anchor of one
                                   worker alone, from the first step on */
    uint32_t shuffle;           /* block of shard_order_init */
    uint32_t dataset;           /* its number in the job */
    uint64_t max_steps;         /* the job ends with this step, even within an epoch; 0: no limit */
};

/* The records of a step. */
struct plan_step {
    uint64_t version;
    uint32_t epoch;
    uint64_t first; /* position in the epoch */
    uint32_t count; /* of positions, > 0 */
    uint32_t micro_batches;
};

/* Micro-batches of a step. */
struct plan_share {
    uint32_t first;
    uint32_t count;
};

/* Returns NULL, or what is wrong with the plan; a wrong plan must not be used by the functions
 * below. */
const char *plan_check(const struct plan *plan);
/* Whether the anchor of a generation that begins after that version fits the plan. */
bool plan_anchor_fits(const struct plan *plan, const struct shard_anchor *anchor, uint64_t version);

/* Returns the number of micro-batches of a step that is not cut short by the end of its epoch. The
 * first step after the anchor may have another number. */
uint32_t plan_full(const struct plan *plan);

/* Returns the number of the last step: that of all epochs, or max_steps if this is less.
 * per_worker: as long as the generation continues. */
uint64_t plan_steps(const struct plan *plan);
/* Returns how many epochs are completely trained after that step; this is the number, from 0, of
 * the epoch under way. */
uint32_t plan_epochs_done(const struct plan *plan, uint64_t version);
/* Returns how many positions, of all epochs, steps 1 ... version have trained; version is the
 * anchor's or later. */
uint64_t plan_records_done(const struct plan *plan, uint64_t version);

/* Returns a step; 0 < version <= plan_steps, and version is after the anchor. */
struct plan_step plan_step(const struct plan *plan, uint64_t version);
struct shard_range plan_step_range(const struct plan *plan, const struct plan_step *step);
/* Returns the positions of one of the step's micro-batches. */
struct shard_range plan_micro_batch(const struct plan *plan, const struct plan_step *step,
                                    uint32_t micro_batch);
/* Writes the records at these positions. */
void plan_records(const struct plan *plan, struct shard_range range, uint64_t *ret);

/* Returns the share of the rank-th of `size` workers. */
struct plan_share plan_share(uint32_t micro_batches, uint32_t rank, uint32_t size);

/* Returns a digest that is equal for plans with the same steps, even if one plan ends sooner, or
 * has another anchor: a checkpoint of one is valid for the other. */
uint64_t plan_digest(const struct plan *plan);
