/* What is appended to the journal, when it is durable, and what is acknowledged then.
 *
 * Internal to src/rendezvous. Layer: pure. Memory: the caller's.
 */
#pragma once

#include "rendezvous/turn.h"

/* Appends those of the steps first … version, of a message of the open generation, that are not in
 * the log yet. Returns false if steps between the log and `first` are missing. */
bool rendezvous_journal_add_steps(struct turn *t, uint64_t first, uint64_t version);

void rendezvous_journal_append(struct turn *t, struct rendezvous_effect effect);
void rendezvous_journal_add_checkpoint(struct turn *t, uint64_t version);
/* Registers the checkpoint as the newest one. */
void rendezvous_journal_note_checkpoint(struct rendezvous *state, uint64_t version);
/* Returns the version of the checkpoint that the job would go back to. */
uint64_t rendezvous_journal_last_checkpoint(const struct rendezvous *state);
/* Forgets the checkpoints after `version`. This is one of the checkpoints, or older than all of
 * them. */
void rendezvous_journal_forget_checkpoints(struct rendezvous *state, uint64_t version);
void rendezvous_journal_tell_checkpoints(struct turn *t, const struct rendezvous_peer *peer);

/* Acknowledges a durable step again: when the step became durable, this member had not applied it
 * yet, and ignored the ACK. */
void rendezvous_journal_acknowledge(struct turn *t, const struct rendezvous_peer *peer,
                                    uint64_t version);

/* Called at the end of each step: asks the caller to make durable what was appended. */
void rendezvous_journal_sync(struct turn *t);
/* Called when that is durable: acknowledges the steps, and registers the checkpoints that waited
 * for them. */
void rendezvous_journal_synced(struct turn *t);

/* Cuts the log after `version`, the base of the generation that is being recorded. */
void rendezvous_journal_cut(struct rendezvous *state, uint64_t version);
