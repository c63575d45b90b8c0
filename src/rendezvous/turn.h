/* A step under way: the state, the event, the effects so far; and the slots of processes.
 *
 * Internal to src/rendezvous. Layer: pure. Memory: the caller's.
 */
#pragma once

#include "rendezvous/rendezvous.h"

struct turn {
    struct rendezvous *s;
    const struct rendezvous_event *event;
    struct rendezvous_effects *effects;
};

void turn_emit(struct turn *t, struct rendezvous_effect effect);
/* Sends only to a peer that is connected. */
void turn_send(struct turn *t, const struct rendezvous_peer *peer, struct rendezvous_effect effect);
void turn_expel(struct turn *t, uint64_t incarnation, enum rendezvous_reason reason);

/* Returns NULL if the process is not known. */
struct rendezvous_peer *turn_find(struct rendezvous *state, uint64_t incarnation);
/* Returns NULL if there is no room. */
struct rendezvous_peer *turn_take(struct rendezvous *state, uint64_t incarnation,
                                  enum rendezvous_standing standing);
void turn_free(struct rendezvous *state, struct rendezvous_peer *peer);
void turn_free_all(struct rendezvous *state);
/* Returns NULL, or what is wrong with the index. The index has the numbers of the slots in use, in
 * the order of their processes' incarnations. They are numbers, not pointers, so that a copy of the
 * state's bytes is a copy of the state. */
const char *turn_check(const struct rendezvous *state);
