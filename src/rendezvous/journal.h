/* What is appended to the journal, when it is durable, and what is acknowledged then.
 *
 * Internal to src/rendezvous. Layer: pure. Memory: the caller's.
 */
#pragma once

#include "rendezvous/turn.h"

/* Steps first … version of a message of the open generation: those that are not in the log yet are
 * appended. False: steps between the log and `first` are missing. */
bool rendezvous_journal_add_steps(struct turn *t, uint64_t first, uint64_t version);

void rendezvous_journal_append(struct turn *t, struct rendezvous_effect effect);
void rendezvous_journal_add_checkpoint(struct turn *t, uint64_t version);
/* It is the newest. */
void rendezvous_journal_note_checkpoint(struct rendezvous *state, uint64_t version);
/* Whose state the job goes back to. */
uint64_t rendezvous_journal_last_checkpoint(const struct rendezvous *state);
/* Forgets the checkpoints after `version`, which is one of them, or comes before all. */
void rendezvous_journal_forget_checkpoints(struct rendezvous *state, uint64_t version);
void rendezvous_journal_tell_checkpoints(struct turn *t, const struct rendezvous_peer *peer);

/* A step that is durable is acknowledged again: when it became so, this member had not applied it,
 * and took no notice. */
void rendezvous_journal_acknowledge(struct turn *t, const struct rendezvous_peer *peer,
                                    uint64_t version);

/* Called at the end of each step: asks for what was appended to be made durable. */
void rendezvous_journal_sync(struct turn *t);
/* What was asked for is durable: acknowledged, and checkpoints that waited for it are registered.
 */
void rendezvous_journal_synced(struct turn *t);

/* A generation whose log ends at its base is being recorded. */
void rendezvous_journal_cut(struct rendezvous *state, uint64_t version);
