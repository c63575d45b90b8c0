/* An anchor says where the steps of a planned data set begin, and how many micro-batches they have,
 * from one step on. If the global batch is constant, one anchor holds for the whole job. If it
 * follows the number of workers, each generation has its own anchor. The first step after the base
 * of a generation is as large as it would have been in the generation before, because it may have
 * begun there and be tried again by other workers. The size of later steps follows the number of
 * workers in the generation.
 *
 * A step has `batch` positions for each micro-batch, or the rest of its epoch.
 *
 * Layer: pure. Memory: none. Thread: any.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct shard_anchor {
    uint64_t version;  /* of the last step before the anchor */
    uint32_t epoch;    /* of step version + 1; the number of epochs if there is no such step */
    uint64_t position; /* of the beginning of that step, in its epoch */
    uint32_t next;     /* micro-batches of step version + 1, > 0 */
    uint32_t later;    /* of each step after that, > 0; 0: there is no anchor */
};

/* The parameters of the data set from which steps are made. */
struct shard_extent {
    uint64_t records; /* > 0 */
    uint32_t epochs;
    uint32_t batch; /* > 0 */
};

struct shard_place {
    uint32_t epoch;
    uint64_t position; /* < records */
};

/* Returns the anchor of steps that all have this number of micro-batches, from the first step
 * on. */
struct shard_anchor shard_anchor_alike(uint32_t micro_batches);
/* Whether numbers from outside are a valid anchor of that version in that extent. */
bool shard_anchor_valid(const struct shard_anchor *anchor, struct shard_extent extent,
                        uint64_t version);

/* Returns the version of the last step of all epochs. */
uint64_t shard_anchor_last(const struct shard_anchor *anchor, struct shard_extent extent);
/* Returns the place where the step after that version begins; anchor->version <= version <=
 * shard_anchor_last. At the end this is position 0 of epoch extent.epochs. */
struct shard_place shard_anchor_place(const struct shard_anchor *anchor, struct shard_extent extent,
                                      uint64_t version);
/* Returns the number of the step's positions. */
uint32_t shard_anchor_count(const struct shard_anchor *anchor, struct shard_extent extent,
                            uint64_t version);

/* Returns the anchor of the next generation, which begins after step `version`. */
struct shard_anchor shard_anchor_move(const struct shard_anchor *anchor, struct shard_extent extent,
                                      uint64_t version, uint32_t later);
/* Returns `workers` times `per_worker`, or the largest number that a step may have if this is
 * smaller. */
uint32_t shard_anchor_later(uint32_t batch, uint32_t per_worker, uint32_t workers);
