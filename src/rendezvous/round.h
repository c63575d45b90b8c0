/* From one generation to the next: closing, the decision, recording, opening.
 *
 * Internal to src/rendezvous. Layer: pure. Memory: the caller's.
 */
#pragma once

#include "rendezvous/turn.h"

/* Rule 4; hard: not at a boundary. */
void round_close(struct turn *t, bool hard);
/* Closes the round when joiners wait for a place, or members to leave, and the generation is
 * settled. */
void round_close_if_wanted(struct turn *t);
/* CLOSING: begins to record the next generation when all that it needs is known. */
void round_decide(struct turn *t);
/* RECORDING, and the record is durable. */
void round_open(struct turn *t);

/* OPEN of the generation that is open. */
void round_send_open(struct turn *t, const struct rendezvous_peer *peer);
void round_send_close(struct turn *t, const struct rendezvous_peer *peer);
