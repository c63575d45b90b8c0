/* Planned data sets: which records a step has follows from what is done. See internal.h. */
#include "shard/internal.h"

static const struct shard_data *planned(const struct shard_state *state, uint32_t dataset)
{
    bool is = dataset < state->data_count && state->data[dataset].spec.micro_batches > 0;
    return is ? &state->data[dataset] : NULL;
}

bool shard_is_planned(const struct shard_state *state, uint32_t dataset)
{
    return planned(state, dataset) != NULL;
}

/* Whether the range comes next in its epoch. Steps are done one after the other, so that the done
 * positions of an epoch are its front. */
static bool follows(const struct shard_data *data, struct shard_range range, uint64_t taken)
{
    const struct shard_epoch *epoch = &data->open[0];
    return data->open_count > 0 && range.epoch == epoch->epoch &&
           range.first == epoch->done + taken && shard_range_valid(range);
}

static bool is_whole(const struct shard_data *data, uint64_t taken)
{
    const struct shard_epoch *epoch = &data->open[0];
    uint64_t step = (uint64_t)data->spec.batch * data->spec.micro_batches;
    uint64_t left = epoch->size - epoch->done;
    if (data->spec.per_worker) {
        return taken == left || (taken < left && taken % data->spec.batch == 0);
    }
    return taken == (step < left ? step : left);
}

/* Whether a planned data set is not done yet. */
static bool is_under_way(const struct shard_state *state)
{
    bool any = false;
    for (uint32_t i = 0; i < state->data_count; i++) {
        any = any || (planned(state, i) && state->data[i].open_count > 0);
    }
    return any;
}

static void refuse_unplanned(struct shard_state *state, struct shard_part part)
{
    shard_emit(state, (struct shard_effect){.kind = SHARD_REFUSED,
                                            .reason = SHARD_UNPLANNED,
                                            .owner = part.owner,
                                            .dataset = part.range.dataset,
                                            .range = part.range});
}

bool shard_plan_check(struct shard_state *state, const struct shard_part *parts, size_t count)
{
    uint64_t taken[SHARD_DATASETS_MAX] = {0};
    bool good = count > 0 || !is_under_way(state); /* without records it is no step */
    size_t i = 0;
    for (; i < count && good; i++) {
        struct shard_range range = parts[i].range;
        const struct shard_data *data = planned(state, range.dataset);
        good = !data || follows(data, range, taken[range.dataset]);
        if (data) {
            taken[range.dataset] += range.count;
        }
    }
    for (uint32_t j = 0; j < state->data_count && good; j++) {
        good = taken[j] == 0 || is_whole(&state->data[j], taken[j]);
    }
    if (!good) {
        refuse_unplanned(state, count > 0 ? parts[i - 1] : (struct shard_part){0});
    }
    return good;
}
