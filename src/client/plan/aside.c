/* See aside.h. */
#include "client/plan/aside.h"

static bool has(const struct aside *aside, uint64_t record)
{
    for (uint32_t i = 0; i < aside->count; i++) {
        if (aside->records[i] == record) {
            return true;
        }
    }
    return false;
}

/* Records are only added, at the end, so that the number is enough. */
bool aside_equals(const struct aside *aside, const struct aside *other)
{
    return aside->count == other->count;
}

static struct shard_order order_of(const struct plan *plan, struct shard_range range)
{
    struct shard_order order;
    shard_order_init(&order, plan->records, plan->shuffle, plan->seed, plan->dataset, range.epoch);
    return order;
}

/* Searches by the records that are set aside, because they are few. */
uint32_t aside_count_left(const struct aside *aside, const struct plan *plan,
                          struct shard_range range)
{
    uint32_t left = range.count;
    if (aside->count == 0) {
        return left;
    }
    struct shard_order order = order_of(plan, range);
    for (uint32_t i = 0; i < aside->count; i++) {
        uint64_t position = aside->records[i] < plan->records
                                ? shard_order_position(&order, aside->records[i])
                                : UINT64_MAX;
        left -= position >= range.first && position < shard_range_end(range);
    }
    return left;
}

uint32_t aside_records_left(const struct aside *aside, const struct plan *plan,
                            struct shard_range range, uint64_t *ret)
{
    uint32_t left = 0;
    plan_records(plan, range, ret);
    for (uint32_t i = 0; i < range.count; i++) {
        if (!has(aside, ret[i])) {
            ret[left++] = ret[i];
        }
    }
    return left;
}

static bool is_left(const struct aside *aside, const struct plan *plan, struct shard_range range,
                    uint64_t position)
{
    range.first = position;
    range.count = 1;
    return aside_count_left(aside, plan, range) > 0;
}

struct shard_range aside_trim(const struct aside *aside, const struct plan *plan,
                              struct shard_range range)
{
    while (range.count > 0 && !is_left(aside, plan, range, range.first)) {
        range.first++;
        range.count--;
    }
    while (range.count > 0 && !is_left(aside, plan, range, shard_range_end(range) - 1)) {
        range.count--;
    }
    return range;
}
