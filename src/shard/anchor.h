/* Where the steps of a planned data set lie, and of how many micro-batches they are, from one step
 * on. Where the global batch is constant, one anchor holds for the whole job. Where it follows the
 * number of workers, each generation has its own: the first step after its base, which may be tried
 * again by other workers than it began with, is as large as it would have been in the generation
 * before; those after it are as large as the workers of the generation make them.
 *
 * A step has so many times `batch` positions, or what is left of its epoch.
 *
 * Layer: pure. Memory: none. Thread: any.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct shard_anchor {
    uint64_t version;  /* of the last step before it */
    uint32_t epoch;    /* in which step version + 1 begins; that of the data set's end: there is no
                          such step */
    uint64_t position; /* … at this one of its positions */
    uint32_t next;     /* micro-batches of step version + 1, > 0 */
    uint32_t later;    /* of each step after that, > 0; 0: there is no anchor */
};

/* What steps are cut from. */
struct shard_extent {
    uint64_t records; /* > 0 */
    uint32_t epochs;
    uint32_t batch; /* > 0 */
};

struct shard_place {
    uint32_t epoch;
    uint64_t position; /* < records */
};

/* The anchor of steps that all have so many micro-batches, from the first one on. */
struct shard_anchor shard_anchor_alike(uint32_t micro_batches);
/* Whether numbers that came from outside are an anchor of that version in that extent. */
bool shard_anchor_valid(const struct shard_anchor *anchor, struct shard_extent extent,
                        uint64_t version);

/* The version of the last step of all epochs. */
uint64_t shard_anchor_last(const struct shard_anchor *anchor, struct shard_extent extent);
/* The place where the step after that version begins; anchor->version <= version <=
 * shard_anchor_last. At the end: position 0 of epoch extent.epochs. */
struct shard_place shard_anchor_place(const struct shard_anchor *anchor, struct shard_extent extent,
                                      uint64_t version);
/* The number of that step, as long as its epoch has so many left; version > anchor->version. */
uint32_t shard_anchor_micro_batches(const struct shard_anchor *anchor, uint64_t version);
/* Its positions. */
uint32_t shard_anchor_count(const struct shard_anchor *anchor, struct shard_extent extent,
                            uint64_t version);

/* The anchor of the next generation, which begins after step `version`. */
struct shard_anchor shard_anchor_move(const struct shard_anchor *anchor, struct shard_extent extent,
                                      uint64_t version, uint32_t later);
/* `workers` times `per_worker`, or as many as a step may have. */
uint32_t shard_anchor_later(uint32_t batch, uint32_t per_worker, uint32_t workers);
