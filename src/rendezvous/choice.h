/* Which of the members and joiners go on in the next generation: peers with `next`.
 *
 * Internal to src/rendezvous. Layer: pure. Memory: the caller's.
 */
#pragma once

#include "rendezvous/turn.h"

/* Members that have reported and stay; returns how many. ending: only the end of the training is
 * left, and a member that leaves then has finished by it. */
uint32_t choice_take_stayers(struct rendezvous *state, bool ending);
/* And the oldest joiners, as many as there is room for; none where only the end is to be reached.
 * Takes and returns how many go on, as does the next one. */
uint32_t choice_take_joiners(struct rendezvous *state, uint32_t count, bool ending);
/* If no one of them has the model: leavers that have it stay until another has it, too. */
uint32_t choice_keep_holders(struct rendezvous *state, uint32_t count);
/* When two members that lost each other have both been chosen, the younger is left out after some
 * rounds without a step: they would close each generation again. */
void choice_part_the_cut(struct rendezvous *state, uint64_t base);
/* Nobody goes on for now. */
void choice_forget(struct rendezvous *state);
/* Nobody is there for whom leavers could stay: they are expelled. */
void choice_release_leavers(struct turn *t);

/* A member reports that it lost another. */
void choice_suspect(struct rendezvous *state, uint64_t by, uint64_t lost);
