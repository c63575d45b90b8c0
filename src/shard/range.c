/* See range.h. */
#include "shard/range.h"

#include <assert.h>

bool shard_range_valid(struct shard_range range)
{
    return range.count > 0 && range.first <= UINT64_MAX - range.count;
}

uint64_t shard_range_end(struct shard_range range)
{
    return range.first + range.count;
}

bool shard_range_same_epoch(struct shard_range a, struct shard_range b)
{
    return a.dataset == b.dataset && a.epoch == b.epoch;
}

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

int shard_range_compare(struct shard_range a, struct shard_range b)
{
    if (a.dataset != b.dataset) {
        return compare(a.dataset, b.dataset);
    }
    return a.epoch != b.epoch ? compare(a.epoch, b.epoch) : compare(a.first, b.first);
}

bool shard_range_overlaps(struct shard_range a, struct shard_range b)
{
    return shard_range_same_epoch(a, b) && a.first < shard_range_end(b) &&
           b.first < shard_range_end(a);
}

bool shard_range_covers(struct shard_range outer, struct shard_range inner)
{
    return shard_range_same_epoch(outer, inner) && outer.first <= inner.first &&
           shard_range_end(inner) <= shard_range_end(outer);
}

struct shard_range shard_range_take(struct shard_range *range, uint32_t count)
{
    assert(0 < count && count < range->count);
    struct shard_range taken = *range;
    taken.count = count;
    range->first += count;
    range->count -= count;
    return taken;
}
