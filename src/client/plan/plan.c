/* See plan.h. */
#include "client/plan/plan.h"

#include "core/hash.h"

#include <assert.h>

static struct shard_extent extent_of(const struct plan *plan)
{
    return (struct shard_extent){
        .records = plan->records, .epochs = plan->epochs, .batch = plan->batch};
}

static struct shard_anchor anchor_of(const struct plan *plan)
{
    return plan->per_worker && plan->anchor.later > 0 ? plan->anchor
                                                      : shard_anchor_alike(plan->micro_batches);
}

const char *plan_check(const struct plan *plan)
{
    if (plan->records == 0 || plan->epochs == 0 || plan->batch == 0 || plan->micro_batches == 0) {
        return "records, epochs, batch and micro_batches are at least 1";
    }
    if ((uint64_t)plan->batch * plan->micro_batches > UINT32_MAX) {
        return "a step has at most 4294967295 records";
    }
    if (plan->records > UINT64_MAX / 2 / plan->epochs) {
        return "all epochs together have at most 2^63 records";
    }
    return NULL;
}

bool plan_anchor_fits(const struct plan *plan, const struct shard_anchor *anchor, uint64_t version)
{
    return plan->per_worker ? shard_anchor_valid(anchor, extent_of(plan), version)
                            : anchor->later == 0;
}

uint32_t plan_full(const struct plan *plan)
{
    return anchor_of(plan).later;
}

uint64_t plan_steps(const struct plan *plan)
{
    struct shard_anchor anchor = anchor_of(plan);
    uint64_t all = shard_anchor_last(&anchor, extent_of(plan));
    return plan->max_steps > 0 && plan->max_steps < all ? plan->max_steps : all;
}

uint32_t plan_epochs_done(const struct plan *plan, uint64_t version)
{
    struct shard_anchor anchor = anchor_of(plan);
    assert(version <= plan_steps(plan));
    return shard_anchor_place(&anchor, extent_of(plan), version).epoch;
}

uint64_t plan_records_done(const struct plan *plan, uint64_t version)
{
    struct shard_anchor anchor = anchor_of(plan);
    assert(version <= plan_steps(plan));
    struct shard_place place = shard_anchor_place(&anchor, extent_of(plan), version);
    return place.epoch * plan->records + place.position;
}

struct plan_step plan_step(const struct plan *plan, uint64_t version)
{
    struct shard_anchor anchor = anchor_of(plan);
    assert(version > anchor.version && version <= plan_steps(plan));
    struct shard_place place = shard_anchor_place(&anchor, extent_of(plan), version - 1);
    uint32_t count = shard_anchor_count(&anchor, extent_of(plan), version);
    return (struct plan_step){.version = version,
                              .epoch = place.epoch,
                              .first = place.position,
                              .count = count,
                              .micro_batches = (count - 1) / plan->batch + 1};
}

struct shard_range plan_step_range(const struct plan *plan, const struct plan_step *step)
{
    return (struct shard_range){
        .dataset = plan->dataset, .epoch = step->epoch, .first = step->first, .count = step->count};
}

struct shard_range plan_micro_batch(const struct plan *plan, const struct plan_step *step,
                                    uint32_t micro_batch)
{
    assert(micro_batch < step->micro_batches);
    uint32_t before = micro_batch * plan->batch, left = step->count - before;
    return (struct shard_range){.dataset = plan->dataset,
                                .epoch = step->epoch,
                                .first = step->first + before,
                                .count = left < plan->batch ? left : plan->batch};
}

void plan_records(const struct plan *plan, struct shard_range range, uint64_t *ret)
{
    struct shard_order order;
    shard_order_init(&order, plan->records, plan->shuffle, plan->seed, plan->dataset, range.epoch);
    for (uint32_t i = 0; i < range.count; i++) {
        ret[i] = shard_order_record(&order, range.first + i);
    }
}

struct plan_share plan_share(uint32_t micro_batches, uint32_t rank, uint32_t size)
{
    assert(rank < size);
    uint32_t first = (uint32_t)((uint64_t)micro_batches * rank / size);
    uint32_t end = (uint32_t)((uint64_t)micro_batches * (rank + 1) / size);
    return (struct plan_share){first, end - first};
}

uint64_t plan_digest(const struct plan *plan)
{
    const uint64_t fields[] = {plan->records, plan->seed,          plan->epochs,  plan->batch,
                               plan->dataset, plan->micro_batches, plan->shuffle, plan->per_worker};
    size_t unused = plan->per_worker ? 0 : sizeof fields[0];
    return hash_bytes(HASH_START, fields, sizeof fields - unused);
}
