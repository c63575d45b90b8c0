/* Records that are set aside because workers died of them (OPEN lists them). Their positions stay
 * in the plan, and are committed with their step; passes and their weights leave them out.
 *
 * Layer: pure (part of libmuster). Memory: the caller's. Thread: any.
 */
#pragma once

#include "client/plan/plan.h"

struct aside {
    uint64_t records[256]; /* WIRE_ASIDE_MAX */
    uint32_t count;
};

/* Whether both are the same set. Equal sets have the same order. */
bool aside_equals(const struct aside *aside, const struct aside *other);

/* Returns how many of the positions have a record that is trained. */
uint32_t aside_count_left(const struct aside *aside, const struct plan *plan,
                          struct shard_range range);
/* Writes the records that are trained at these positions, in their order. Returns how many. */
uint32_t aside_records_left(const struct aside *aside, const struct plan *plan,
                            struct shard_range range, uint64_t *ret);
/* Returns the range from the first to the last position whose record is trained; count 0 if there
 * is none. */
struct shard_range aside_trim(const struct aside *aside, const struct plan *plan,
                              struct shard_range range);
