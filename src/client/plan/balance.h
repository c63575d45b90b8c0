/* Decides how many micro-batches of a step each worker computes, by the time that each takes for
 * one, so that the others wait less for a slow worker. All workers of a generation decide the same,
 * because they use the same numbers (client/manifest.h); the sum of a step has the same bits for
 * every division of the work.
 *
 * Work is moved only if the gain is large enough: the step would then take at most four fifths of
 * its time, and be at least two milliseconds shorter. A worker that has a share keeps at least one
 * micro-batch.
 *
 * Layer: pure (part of libmuster). Memory: the caller's. Thread: any.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Shares may change after this number of steps of a generation. */
enum { BALANCE_STEPS = 16 };

/* Moves micro-batches between ranks. counts: of each rank, in and out. pass_ns: how long each rank
 * takes for a micro-batch; if one of them is 0 (not known yet), nothing is moved. Returns whether
 * something was moved. */
bool balance_move(const uint64_t *pass_ns, int size, uint32_t micro_batches, uint32_t *counts);
