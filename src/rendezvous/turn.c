/* See turn.h. */
#include "rendezvous/turn.h"

#include <assert.h>
#include <string.h>

void turn_emit(struct turn *t, struct rendezvous_effect effect)
{
    assert(t->effects->count < t->effects->room);
    t->effects->list[t->effects->count++] = effect;
}

void turn_send(struct turn *t, const struct rendezvous_peer *peer, struct rendezvous_effect effect)
{
    if (peer->connected) {
        effect.to = peer->incarnation;
        turn_emit(t, effect);
    }
}

void turn_expel(struct turn *t, uint64_t incarnation, enum rendezvous_reason reason)
{
    turn_emit(t, (struct rendezvous_effect){
                     .kind = RENDEZVOUS_EXPEL, .to = incarnation, .reason = reason});
}

/* ---- Slots ---- */

static uint32_t *index_of(const struct rendezvous *state)
{
    return (uint32_t *)(void *)(state->peers + state->room);
}

/* Returns the position of the process in the index, or the position to insert it at. */
static uint32_t place_of(const struct rendezvous *state, uint64_t incarnation)
{
    const uint32_t *index = index_of(state);
    uint32_t low = 0, high = state->taken;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (state->peers[index[middle]].incarnation < incarnation) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct rendezvous_peer *turn_find(struct rendezvous *state, uint64_t incarnation)
{
    uint32_t place = place_of(state, incarnation);
    struct rendezvous_peer *peer =
        place < state->taken ? &state->peers[index_of(state)[place]] : NULL;
    return peer && peer->incarnation == incarnation ? peer : NULL;
}

static void insert(struct rendezvous *state, uint32_t slot)
{
    uint32_t *at = index_of(state) + place_of(state, state->peers[slot].incarnation);
    uint32_t *end = index_of(state) + state->taken++;
    memmove(at + 1, at, (size_t)(end - at) * sizeof *at);
    *at = slot;
}

/* Takes a slot out of the index. Incarnations may be equal, if the journal is damaged: the one of
 * this slot is taken out. */
static void take_out(struct rendezvous *state, uint32_t slot)
{
    uint32_t *at = index_of(state) + place_of(state, state->peers[slot].incarnation);
    uint32_t *last = index_of(state) + --state->taken;
    while (*at != slot) {
        assert(at < last);
        at++;
    }
    memmove(at, at + 1, (size_t)(last - at) * sizeof *at);
    *last = 0;
}

struct rendezvous_peer *turn_take(struct rendezvous *state, uint64_t incarnation,
                                  enum rendezvous_standing standing)
{
    for (uint32_t i = 0; i < state->room; i++) {
        struct rendezvous_peer *peer = &state->peers[i];
        if (peer->standing == RENDEZVOUS_FREE) {
            memset(peer, 0, sizeof *peer);
            peer->incarnation = incarnation;
            peer->standing = standing;
            insert(state, i);
            return peer;
        }
    }
    return NULL;
}

void turn_free(struct rendezvous *state, struct rendezvous_peer *peer)
{
    take_out(state, (uint32_t)(peer - state->peers));
    memset(peer, 0, sizeof *peer);
}

void turn_free_all(struct rendezvous *state)
{
    memset(state->peers, 0, state->room * sizeof *state->peers);
    memset(index_of(state), 0, state->taken * sizeof(uint32_t));
    state->taken = 0;
}

const char *turn_check(const struct rendezvous *state)
{
    const uint32_t *index = index_of(state);
    uint32_t taken = 0;
    for (uint32_t i = 0; i < state->room; i++) {
        taken += state->peers[i].standing != RENDEZVOUS_FREE;
    }
    if (taken != state->taken) {
        return "the index has as many slots as are taken";
    }
    for (uint32_t i = 0; i < taken; i++) {
        const struct rendezvous_peer *peer = &state->peers[index[i]];
        if (peer->standing == RENDEZVOUS_FREE ||
            (i > 0 && state->peers[index[i - 1]].incarnation >= peer->incarnation)) {
            return "the index has each process once, in order";
        }
    }
    return NULL;
}
