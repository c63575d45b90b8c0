/* Ranges of records, as positions in the order in which an epoch visits a data set. Which record
 * lies at a position is said by the order (shuffled or not), never by the range.
 *
 * Layer: pure. Memory: none. Thread: any.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* [first, first + count); count > 0, and the end fits into 64 bits (shard_range_valid). */
struct shard_range {
    uint32_t dataset; /* its number in the job, from 0 */
    uint32_t epoch;   /* from 0 */
    uint64_t first;
    uint32_t count;
};

/* Whether numbers from outside are a valid range. */
bool shard_range_valid(struct shard_range range);

uint64_t shard_range_end(struct shard_range range);

/* Whether both are in one epoch of one data set. */
bool shard_range_same_epoch(struct shard_range a, struct shard_range b);

/* Returns < 0, 0 or > 0: by data set, epoch, first position. Sets are sorted in this order. */
int shard_range_compare(struct shard_range a, struct shard_range b);

/* Whether they have a position in common. */
bool shard_range_overlaps(struct shard_range a, struct shard_range b);

/* Whether all positions of `inner` are in `outer`. */
bool shard_range_covers(struct shard_range outer, struct shard_range inner);

/* Takes `count` positions off the front of the range; 0 < count < range->count. */
struct shard_range shard_range_take(struct shard_range *range, uint32_t count);
