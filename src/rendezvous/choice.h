/* Which of the members and joiners go on in the next generation: peers with `next`.
 *
 * Internal to src/rendezvous. Layer: pure. Memory: the caller's.
 */
#pragma once

#include "rendezvous/turn.h"

/* Takes the members that have reported and stay; returns how many. ending: only the end of the
 * training is left, and a member that leaves during it has finished. */
uint32_t choice_take_stayers(struct rendezvous *state, bool ending);
/* Takes the oldest joiners, too, as many as there is room for; none if only the end of the training
 * is left. `count` is the number of members taken so far; returns the new number, as the next
 * function does. */
uint32_t choice_take_joiners(struct rendezvous *state, uint32_t count, bool ending);
/* If no member that was taken has the model, takes the leavers that have it: they stay until
 * another member has it. */
uint32_t choice_keep_holders(struct rendezvous *state, uint32_t count);
/* If two members that lost each other were both taken, drops the younger one after some rounds
 * without a step: the two would close each generation again. */
void choice_part_the_cut(struct rendezvous *state, uint64_t base);
/* Takes no member for now. */
void choice_forget(struct rendezvous *state);
/* Expels the leavers, because no other member exists for which they could stay. */
void choice_release_leavers(struct turn *t);

/* Notes the report of a member that it lost another. */
void choice_suspect(struct rendezvous *state, uint64_t by, uint64_t lost);
