/* See anchor.h. */
#include "shard/anchor.h"

#include <assert.h>

struct shard_anchor shard_anchor_alike(uint32_t micro_batches)
{
    return (struct shard_anchor){.next = micro_batches, .later = micro_batches};
}

bool shard_anchor_valid(const struct shard_anchor *anchor, struct shard_extent extent,
                        uint64_t version)
{
    uint64_t most = anchor->next > anchor->later ? anchor->next : anchor->later;
    bool ended = anchor->epoch == extent.epochs && anchor->position == 0;
    return anchor->version == version && anchor->next > 0 && anchor->later > 0 &&
           most * extent.batch <= UINT32_MAX &&
           (ended || (anchor->epoch < extent.epochs && anchor->position < extent.records));
}

static uint64_t steps_in(uint64_t positions, uint64_t each)
{
    return positions / each + (positions % each > 0);
}

/* Returns the number of steps in the rest of the epoch. */
static uint64_t steps_left(struct shard_place place, struct shard_extent extent, uint64_t each)
{
    return steps_in(extent.records - place.position, each);
}

/* Moves the place forward by steps. The last step of an epoch may be shorter. */
static struct shard_place move(struct shard_place place, struct shard_extent extent, uint64_t each,
                               uint64_t steps)
{
    uint64_t here = steps_left(place, extent, each), epoch = steps_in(extent.records, each);
    if (steps < here) {
        return (struct shard_place){place.epoch, place.position + steps * each};
    }
    steps -= here;
    return (struct shard_place){place.epoch + 1 + (uint32_t)(steps / epoch), steps % epoch * each};
}

static uint64_t positions_of(uint32_t micro_batches, struct shard_extent extent)
{
    return (uint64_t)micro_batches * extent.batch;
}

struct shard_place shard_anchor_place(const struct shard_anchor *anchor, struct shard_extent extent,
                                      uint64_t version)
{
    struct shard_place place = {anchor->epoch, anchor->position};
    uint64_t steps = version - anchor->version;
    assert(version >= anchor->version && (steps == 0 || anchor->epoch < extent.epochs));
    if (steps == 0) {
        return place;
    }
    place = move(place, extent, positions_of(anchor->next, extent), 1);
    place = move(place, extent, positions_of(anchor->later, extent), steps - 1);
    assert(place.epoch < extent.epochs || (place.epoch == extent.epochs && place.position == 0));
    return place;
}

uint64_t shard_anchor_last(const struct shard_anchor *anchor, struct shard_extent extent)
{
    uint64_t each = positions_of(anchor->later, extent);
    if (anchor->epoch >= extent.epochs) {
        return anchor->version;
    }
    struct shard_place place = shard_anchor_place(anchor, extent, anchor->version + 1);
    if (place.epoch >= extent.epochs) {
        return anchor->version + 1;
    }
    return anchor->version + 1 + steps_left(place, extent, each) +
           (extent.epochs - place.epoch - UINT64_C(1)) * steps_in(extent.records, each);
}

/* Returns the number of micro-batches of that step, if its epoch has so many left; version >
 * anchor->version. */
static uint32_t micro_batches_of(const struct shard_anchor *anchor, uint64_t version)
{
    assert(version > anchor->version);
    return version == anchor->version + 1 ? anchor->next : anchor->later;
}

uint32_t shard_anchor_count(const struct shard_anchor *anchor, struct shard_extent extent,
                            uint64_t version)
{
    uint64_t each = positions_of(micro_batches_of(anchor, version), extent);
    uint64_t left = extent.records - shard_anchor_place(anchor, extent, version - 1).position;
    return (uint32_t)(left < each ? left : each);
}

struct shard_anchor shard_anchor_move(const struct shard_anchor *anchor, struct shard_extent extent,
                                      uint64_t version, uint32_t later)
{
    struct shard_place place = shard_anchor_place(anchor, extent, version);
    return (struct shard_anchor){.version = version,
                                 .epoch = place.epoch,
                                 .position = place.position,
                                 .next = micro_batches_of(anchor, version + 1),
                                 .later = later};
}

uint32_t shard_anchor_later(uint32_t batch, uint32_t per_worker, uint32_t workers)
{
    uint64_t most = UINT32_MAX / batch, all = (uint64_t)per_worker * workers;
    return (uint32_t)(all < most ? all : most);
}
