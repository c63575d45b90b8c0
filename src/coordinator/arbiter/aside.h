/* Records that are set aside: workers died of each of them, and no worker trains it again, in any
 * epoch. They are kept in the journal, so that they stay set aside whatever happens to workers and
 * coordinator.
 *
 * Layer: program (coordinator). Pure. Memory: the caller's. Thread: one.
 */
#pragma once

#include "base/buf.h"
#include "shard/shard.h"
#include "wire/wire.h"

#include <muster/err.h>

struct aside {
    uint32_t dataset;
    uint32_t epoch; /* in which they died */
    uint64_t record;
    uint32_t deaths;
};

struct asides {
    struct aside list[WIRE_ASIDE_MAX];
    uint32_t count;
};

bool asides_have(const struct asides *asides, uint32_t dataset, uint64_t record);
/* False: there is no room for it, or it is there. */
bool asides_add(struct asides *asides, const struct aside *aside);

/* The first `count` of them as OPEN has them. Returns how many. */
uint32_t asides_list(const struct asides *asides, uint32_t count, struct shard_range *ret);

/* The i-th as the record of the journal. */
void asides_write(const struct asides *asides, uint32_t i, struct buf *ret);
/* One more. MUSTER_EDATA: it is none. */
int asides_read(struct asides *asides, const uint8_t *bytes, size_t count, struct muster_err *err);
