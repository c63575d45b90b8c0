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
    uint32_t epoch; /* in which workers died of it */
    uint64_t record;
    uint32_t deaths;
};

struct asides {
    struct aside list[WIRE_ASIDE_MAX];
    uint32_t count;
};

bool asides_have(const struct asides *asides, uint32_t dataset, uint64_t record);
/* Adds a record. Returns false if there is no room for it, or it was added before. */
bool asides_add(struct asides *asides, const struct aside *aside);

/* Lists the first `count` of them for OPEN. Returns how many there are. */
uint32_t asides_list(const struct asides *asides, uint32_t count, struct shard_range *ret);

/* Writes the i-th of them as a record of the journal. */
void asides_write(const struct asides *asides, uint32_t i, struct buf *ret);
/* Reads and adds one. MUSTER_EDATA: the bytes are not valid. */
int asides_read(struct asides *asides, const uint8_t *bytes, size_t count, struct muster_err *err);
