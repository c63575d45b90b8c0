/* From one generation to the next: closing, the decision, recording, opening.
 *
 * Internal to src/rendezvous. Layer: pure. Memory: the caller's.
 */
#pragma once

#include "rendezvous/turn.h"

/* Closes the generation (rule 4); hard: not at a boundary. */
void round_close(struct turn *t, bool hard);
/* Closes the generation if it is settled and joiners wait for a place, or members want to leave. */
void round_close_if_wanted(struct turn *t);
/* In CLOSING: begins to record the next generation when all that it needs is known. */
void round_decide(struct turn *t);
/* Opens the recorded generation, once its record is durable. */
void round_open(struct turn *t);

/* Sends OPEN of the open generation. */
void round_send_open(struct turn *t, const struct rendezvous_peer *peer);
void round_send_close(struct turn *t, const struct rendezvous_peer *peer);
