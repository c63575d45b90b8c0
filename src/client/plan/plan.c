/* See plan.h. */
#include "client/plan/plan.h"

#include "core/hash.h"

#include <assert.h>

static uint64_t records_of_step(const struct plan *plan)
{
    return (uint64_t)plan->batch * plan->micro_batches;
}

static uint64_t steps_of_epoch(const struct plan *plan)
{
    uint64_t each = records_of_step(plan);
    return plan->records / each + (plan->records % each > 0);
}

const char *plan_check(const struct plan *plan)
{
    if (plan->records == 0 || plan->epochs == 0 || plan->batch == 0 || plan->micro_batches == 0) {
        return "records, epochs, batch and micro_batches are at least 1";
    }
    if (records_of_step(plan) > UINT32_MAX) {
        return "a step has at most 4294967295 records";
    }
    if (plan->records > UINT64_MAX / 2 / plan->epochs) {
        return "all epochs together have at most 2^63 records";
    }
    return NULL;
}

uint64_t plan_steps(const struct plan *plan)
{
    uint64_t all = steps_of_epoch(plan) * plan->epochs;
    return plan->max_steps > 0 && plan->max_steps < all ? plan->max_steps : all;
}

uint32_t plan_epochs_done(const struct plan *plan, uint64_t version)
{
    assert(version <= plan_steps(plan));
    return (uint32_t)(version / steps_of_epoch(plan));
}

uint64_t plan_records_done(const struct plan *plan, uint64_t version)
{
    if (version == 0) {
        return 0;
    }
    struct plan_step last = plan_step(plan, version);
    return last.epoch * plan->records + last.first + last.count;
}

struct plan_step plan_step(const struct plan *plan, uint64_t version)
{
    assert(version > 0 && version <= plan_steps(plan));
    uint64_t before = version - 1, steps = steps_of_epoch(plan), each = records_of_step(plan);
    uint64_t first = before % steps * each, left = plan->records - first;
    uint32_t count = (uint32_t)(left < each ? left : each);
    return (struct plan_step){.version = version,
                              .epoch = (uint32_t)(before / steps),
                              .first = first,
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
    const uint64_t fields[] = {plan->records, plan->seed,          plan->epochs, plan->batch,
                               plan->dataset, plan->micro_batches, plan->shuffle};
    return hash_bytes(HASH_START, fields, sizeof fields);
}
