/* Reads the journal back into the arbiter.
 *
 * Layer: program (coordinator), private to this folder. Pure.
 */
#pragma once

#include "coordinator/arbiter/internal.h"

void replay(struct arbiter *a, const struct arbiter_event *event);
/* Replays a frame of COMMITS. */
void replay_steps(struct arbiter *a, const uint8_t *bytes, size_t count);
/* It is registered: the records go back to it from now on. */
/* Forgets the checkpoints after `version`, as the log is cut there. */
void replay_forget_checkpoints(struct arbiter *a, uint64_t version);
void replay_checkpoint(struct arbiter *a, const struct wire_checkpoint *told);
/* Keeps a checkpoint with a copy of its path. */
void replay_keep(struct saved *saved, const struct wire_checkpoint *told);
