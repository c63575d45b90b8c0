/* Keeps data sets and their epochs: says which epoch may begin, and which is done. See internal.h.
 */
#include "shard/internal.h"

#include <muster/err.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool shard_data_is_valid(const struct shard_dataset *spec)
{
    return memchr(spec->name, 0, sizeof spec->name) && spec->task < SHARD_TASKS && spec->size > 0 &&
           spec->size <= SHARD_SIZE_MAX && spec->batch > 0 &&
           (uint64_t)spec->batch * spec->micro_batches <= UINT32_MAX &&
           !(spec->micro_batches > 0 && spec->overlap) &&
           !(spec->micro_batches == 0 && spec->per_worker);
}

/* Whether the data set is the same. A worker that comes later may see the reduced size. */
static bool is_same(const struct shard_data *data, const struct shard_dataset *told)
{
    const struct shard_dataset *spec = &data->spec;
    return spec->task == told->task && spec->seed == told->seed && spec->block == told->block &&
           spec->batch == told->batch && spec->micro_batches == told->micro_batches &&
           spec->per_worker == told->per_worker && spec->overlap == told->overlap &&
           spec->set_aside == told->set_aside && data->told_epochs == told->epochs &&
           (data->told_size == told->size || spec->size == told->size);
}

static uint32_t find(const struct shard_state *state, const char *name)
{
    uint32_t number = 0;
    while (number < state->data_count && strcmp(state->data[number].spec.name, name) != 0) {
        number++;
    }
    return number;
}

/* Every worker names the data set that it wants; the first one creates it. */
int shard_data_add(struct shard_state *state, const struct shard_dataset *spec)
{
    if (!shard_data_is_valid(spec)) {
        shard_refuse(state, 0, 0, SHARD_BAD_REQUEST);
        return 0;
    }
    uint32_t number = find(state, spec->name);
    struct shard_data *data = &state->data[number];
    if (number < state->data_count && !is_same(data, spec)) {
        shard_refuse(state, 0, number, SHARD_CONFLICT);
        return 0;
    }
    if (number == SHARD_DATASETS_MAX) {
        shard_refuse(state, 0, 0, SHARD_FULL);
        return 0;
    }
    if (number == state->data_count) {
        uint64_t *owners = calloc(SHARD_OWNERS_MAX, sizeof *owners);
        if (!owners) {
            return MUSTER_ENOMEM;
        }
        *data = (struct shard_data){.spec = *spec,
                                    .told_size = spec->size,
                                    .told_epochs = spec->epochs,
                                    .waiting.owners = owners};
        shard_set_init(&data->to_do, &state->nodes);
        state->data_count++;
    }
    shard_emit(state, (struct shard_effect){.kind = SHARD_ADDED, .dataset = number});
    return 0;
}

void shard_data_extend(struct shard_state *state, uint32_t dataset, uint64_t epochs)
{
    struct shard_dataset *spec = &state->data[dataset].spec;
    if (epochs == 0 || shard_is_planned(state, dataset) || spec->epochs == SHARD_ENDLESS ||
        epochs >= SHARD_ENDLESS - spec->epochs) {
        shard_refuse(state, 0, dataset, SHARD_BAD_REQUEST);
        return;
    }
    spec->epochs += (uint32_t)epochs;
}

void shard_data_shrink(struct shard_state *state, uint32_t dataset, uint64_t size)
{
    struct shard_dataset *spec = &state->data[dataset].spec;
    if (size == 0 || size > spec->size || shard_is_planned(state, dataset)) {
        shard_refuse(state, 0, dataset, SHARD_BAD_REQUEST);
    } else if (size < spec->size) {
        spec->size = size;
        shard_emit(state,
                   (struct shard_effect){.kind = SHARD_SHRUNK, .dataset = dataset, .count = size});
    }
}

bool shard_data_ended(const struct shard_data *data)
{
    return data->open_count == 0 && data->next_epoch == data->spec.epochs;
}

struct shard_epoch *shard_epoch_of(struct shard_data *data, uint32_t epoch)
{
    for (size_t i = 0; i < data->open_count; i++) {
        if (data->open[i].epoch == epoch) {
            return &data->open[i];
        }
    }
    return NULL;
}

/* Opens the next epoch: all its positions are to do. Without memory the epoch stays closed until
 * the next step. */
static bool open_next(struct shard_state *state, uint32_t dataset)
{
    struct shard_data *data = &state->data[dataset];
    uint64_t size = data->spec.size;
    uint32_t nodes = (uint32_t)(size / UINT32_MAX + 1 + state->aside_count);
    if (shard_nodes_reserve(&state->nodes, nodes) < 0) {
        return false;
    }
    for (uint64_t first = 0; first < size;) {
        uint64_t left = size - first;
        uint32_t count = left < UINT32_MAX ? (uint32_t)left : UINT32_MAX;
        struct shard_range range = {dataset, data->next_epoch, first, count};
        int r = shard_set_add(&data->to_do, range);
        assert(r == 0);
        first += count;
    }
    struct shard_epoch *epoch = &data->open[data->open_count++];
    *epoch = (struct shard_epoch){.epoch = data->next_epoch, .size = size};
    data->next_epoch++;
    shard_aside_skip(state, dataset, epoch);
    return true;
}

static bool may_open(const struct shard_data *data, bool granted)
{
    if (data->next_epoch == data->spec.epochs) {
        return false;
    }
    return data->open_count == 0 ||
           (data->spec.overlap && granted && data->open_count < SHARD_OPEN_MAX);
}

static void close_done(struct shard_state *state, uint32_t dataset)
{
    struct shard_data *data = &state->data[dataset];
    while (data->open_count > 0 && data->open[0].done == data->open[0].size) {
        shard_emit(state, (struct shard_effect){.kind = SHARD_EPOCH_DONE,
                                                .dataset = dataset,
                                                .range = {dataset, data->open[0].epoch, 0, 0},
                                                .count = data->open[0].size});
        data->open[0] = data->open[1];
        data->open_count--;
    }
}

/* If all records of an epoch are set aside, the epoch is done when it opens, and the next one may
 * be, too: each of them needs room among the effects. */
static bool has_room_to_open(struct shard_state *state)
{
    return state->aside_count == 0 || shard_has_room(state);
}

void shard_epochs_advance(struct shard_state *state, uint32_t dataset)
{
    struct shard_data *data = &state->data[dataset];
    bool again = true;
    while (again) {
        close_done(state, dataset);
        bool granted = data->to_do.ranges == 0 && !shard_suspect_free(state, dataset);
        again = may_open(data, granted) && has_room_to_open(state) && open_next(state, dataset);
        const struct shard_epoch *last = again ? &data->open[data->open_count - 1] : NULL;
        again = last && last->done == last->size;
    }
}

void shard_epochs_reach(struct shard_state *state, struct shard_range range)
{
    if (!state->serving && range.dataset < state->data_count) {
        struct shard_data *data = &state->data[range.dataset];
        if (range.epoch == data->next_epoch && may_open(data, true)) {
            (void)open_next(state, range.dataset);
        }
    }
}
