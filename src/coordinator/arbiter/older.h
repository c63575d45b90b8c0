/* The records at checkpoints before the newest one, to which a job goes back if nobody can read
 * the newest. Their versions ascend.
 *
 * Layer: program (coordinator). Pure. Memory: older_done. Thread: one.
 */
#pragma once

#include "rendezvous/rendezvous.h"

#include <muster/err.h>

#include <stddef.h>
#include <stdint.h>

enum { OLDER_MAX = RENDEZVOUS_CHECKPOINTS_MAX - 1 };

/* The records at a version: a snapshot of shard/shard.h. */
struct older_state {
    uint64_t version;
    uint8_t *bytes;
    size_t count;
};

struct older {
    struct older_state states[OLDER_MAX];
    size_t count;
};

void older_done(struct older *older);

/* Adds a state that is newer than all others, and owns its bytes from now on. If there are too
 * many, the oldest is forgotten. */
void older_push(struct older *older, struct older_state state);
/* Removes and returns the newest state; there must be one. */
struct older_state older_pop(struct older *older);
/* Returns NULL if there is no state of that version. */
const struct older_state *older_find(const struct older *older, uint64_t version);

/* Adds the next state from a journal, which is older than version `before`. The bytes are copied.
 * MUSTER_EDATA: they are not a valid checkpoint. */
int older_add(struct older *older, uint64_t before, uint64_t version, const uint8_t *bytes,
              size_t count, struct muster_err *err);

/* Frees *ret, and replaces it by a copy of the bytes; NULL if there are none. */
int older_copy(const uint8_t *bytes, size_t count, uint8_t **ret, struct muster_err *err);
