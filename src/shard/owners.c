/* Keeps the owners, which may hold records, sorted by their incarnations. See internal.h. */
#include "shard/internal.h"

#include <stdlib.h>
#include <string.h>

/* Returns the index of the owner, or the index to insert it at. */
static size_t place_of(const struct shard_state *state, uint64_t incarnation)
{
    size_t low = 0, high = state->owner_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (state->owners[middle]->incarnation < incarnation) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct shard_owner *shard_owner_of(const struct shard_state *state, uint64_t incarnation)
{
    size_t place = place_of(state, incarnation);
    bool there = place < state->owner_count && state->owners[place]->incarnation == incarnation;
    return there ? state->owners[place] : NULL;
}

struct shard_owner *shard_owner_add(struct shard_state *state, uint64_t incarnation,
                                    int64_t expires_ms)
{
    struct shard_owner *owner = calloc(1, sizeof *owner);
    if (!owner) {
        return NULL;
    }
    size_t place = place_of(state, incarnation);
    memmove(&state->owners[place + 1], &state->owners[place],
            (state->owner_count - place) * sizeof *state->owners);
    state->owners[place] = owner;
    state->owner_count++;
    owner->incarnation = incarnation;
    owner->expires_ms = expires_ms;
    shard_set_init(&owner->held, &state->nodes);
    if (expires_ms < state->next_expiry_ms) {
        state->next_expiry_ms = expires_ms;
    }
    return owner;
}

static void leave_queue(struct shard_queue *queue, uint64_t incarnation)
{
    size_t kept = 0;
    for (size_t i = 0; i < queue->count; i++) {
        uint64_t other = queue->owners[(queue->head + i) % SHARD_OWNERS_MAX];
        if (other != incarnation) {
            queue->owners[(queue->head + kept++) % SHARD_OWNERS_MAX] = other;
        }
    }
    queue->count = kept;
}

void shard_owner_stop_waiting(struct shard_state *state, struct shard_owner *owner)
{
    for (uint32_t i = 0; i < state->data_count; i++) {
        if (owner->wanted[i]) {
            owner->wanted[i] = 0;
            leave_queue(&state->data[i].waiting, owner->incarnation);
        }
    }
}

void shard_owner_remove(struct shard_state *state, struct shard_owner *owner)
{
    shard_owner_stop_waiting(state, owner);
    size_t place = place_of(state, owner->incarnation);
    state->owner_count--;
    memmove(&state->owners[place], &state->owners[place + 1],
            (state->owner_count - place) * sizeof *state->owners);
    shard_set_clear(&owner->held);
    free(owner);
}
