/* Grants records to the workers that ask for them. See internal.h. */
#include "shard/internal.h"

#include <muster/err.h>

#include <assert.h>

/* ---- Workers that wait ---- */

static void queue_push(struct shard_queue *queue, uint64_t owner)
{
    assert(queue->count < SHARD_OWNERS_MAX);
    queue->owners[(queue->head + queue->count++) % SHARD_OWNERS_MAX] = owner;
}

static uint64_t queue_pop(struct shard_queue *queue)
{
    assert(queue->count > 0);
    uint64_t owner = queue->owners[queue->head];
    queue->head = (queue->head + 1) % SHARD_OWNERS_MAX;
    queue->count--;
    return owner;
}

/* ---- What a worker gets ---- */

/* Returns how many records a worker may get: at most half of its even share of the records left, so
 * that towards the end of an epoch some are left for every worker, and faster workers get more;
 * whole batches, and at least one. */
static uint64_t limit(const struct shard_state *state, const struct shard_data *data,
                      uint64_t wanted)
{
    uint64_t batch = data->spec.batch;
    uint64_t share = data->to_do.records / (2 * state->owner_count) / batch * batch;
    share = share < batch ? batch : share;
    return wanted < share ? wanted : share;
}

static bool hold(struct shard_state *state, struct shard_owner *owner, struct shard_range range,
                 bool alone)
{
    if (shard_set_add(&owner->held, range) < 0) {
        return false; /* no memory: it is granted later */
    }
    owner->alone = alone;
    shard_emit(state, (struct shard_effect){.kind = SHARD_GRANTED,
                                            .owner = owner->incarnation,
                                            .dataset = range.dataset,
                                            .range = range,
                                            .alone = alone});
    return true;
}

/* Grants records from the front of `to_do`, within one epoch. */
static bool grant_ranges(struct shard_state *state, struct shard_owner *owner, uint32_t dataset)
{
    struct shard_data *data = &state->data[dataset];
    struct shard_range range;
    uint64_t left = limit(state, data, owner->wanted[dataset]);
    uint32_t epoch = 0;
    int ranges = 0;
    while (left > 0 && ranges < SHARD_GRANT_RANGES && shard_set_first(&data->to_do, &range)) {
        if (ranges > 0 && range.epoch != epoch) {
            break;
        }
        range.count = range.count < left ? range.count : (uint32_t)left;
        if (!hold(state, owner, range, false)) {
            break;
        }
        int r = shard_set_remove(&data->to_do, range);
        assert(r == 0); /* removing at the front never cuts a range in two */
        epoch = range.epoch;
        left -= range.count;
        ranges++;
    }
    return ranges > 0;
}

/* Grants suspected records alone, to a worker that holds nothing, so that the next crash is caused
 * by them. Until all suspects are granted, the workers that ask must wait, so that they come to
 * hold nothing. */
static bool grant(struct shard_state *state, struct shard_owner *owner, uint32_t dataset)
{
    struct shard_suspect *suspect = shard_suspect_free(state, dataset);
    if (owner->alone || (suspect && owner->held.ranges > 0)) {
        return false;
    }
    if (!suspect) {
        return grant_ranges(state, owner, dataset);
    }
    if (!hold(state, owner, suspect->range, true)) {
        return false;
    }
    suspect->owner = owner->incarnation;
    return true;
}

/* Returns false if the worker has to wait. */
static bool answer(struct shard_state *state, struct shard_owner *owner, uint32_t dataset)
{
    if (state->failed) {
        shard_refuse(state, owner->incarnation, dataset, SHARD_POISONED);
    } else if (shard_data_ended(&state->data[dataset])) {
        shard_emit(state, (struct shard_effect){
                              .kind = SHARD_END, .owner = owner->incarnation, .dataset = dataset});
    } else if (!grant(state, owner, dataset)) {
        return false;
    }
    owner->wanted[dataset] = 0;
    return true;
}

void shard_want(struct shard_state *state, struct shard_owner *owner, uint32_t dataset,
                uint64_t count)
{
    bool waits = owner->wanted[dataset] > 0;
    owner->wanted[dataset] = count;
    if (waits || !state->serving || !answer(state, owner, dataset)) {
        if (!waits) {
            queue_push(&state->data[dataset].waiting, owner->incarnation);
        }
        shard_emit(state, (struct shard_effect){
                              .kind = SHARD_WAIT, .owner = owner->incarnation, .dataset = dataset});
    }
}

/* Whether a worker that waits may get an answer. */
static bool has_answer(struct shard_state *state, uint32_t dataset)
{
    const struct shard_data *data = &state->data[dataset];
    shard_epochs_advance(state, dataset); /* the last grant may have been the last of its epoch */
    return data->to_do.ranges > 0 || shard_suspect_free(state, dataset) || state->failed ||
           shard_data_ended(data);
}

void shard_serve_waiting(struct shard_state *state, uint32_t dataset)
{
    struct shard_data *data = &state->data[dataset];
    for (size_t left = state->serving ? data->waiting.count : 0; left > 0; left--) {
        if (!has_answer(state, dataset) || !shard_has_room(state)) {
            return;
        }
        struct shard_owner *owner = shard_owner_of(state, queue_pop(&data->waiting));
        if (!answer(state, owner, dataset)) {
            queue_push(&data->waiting, owner->incarnation);
        }
    }
}
