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

struct rendezvous_peer *turn_find(struct rendezvous *state, uint64_t incarnation)
{
    for (uint32_t i = 0; i < state->room; i++) {
        struct rendezvous_peer *peer = &state->peers[i];
        if (peer->standing != RENDEZVOUS_FREE && peer->incarnation == incarnation) {
            return peer;
        }
    }
    return NULL;
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
            return peer;
        }
    }
    return NULL;
}

void turn_free(struct rendezvous_peer *peer)
{
    memset(peer, 0, sizeof *peer);
}
