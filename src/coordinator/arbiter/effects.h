/* The effects of the arbiter: a list, and the bytes that they refer to.
 *
 * Layer: program (coordinator). Pure. Memory: arbiter_effects_init/done; it grows, and is used
 * again for each step. Thread: one.
 */
#pragma once

#include "base/buf.h"

#include <muster/err.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ARBITER_BYTES_MAX = 1 << 30 };

enum arbiter_effect_kind {
    ARBITER_APPEND,  /* record (enum entry_kind), bytes: to the journal, before what follows */
    ARBITER_SYNC,    /* make all that was appended durable; then the event DURABLE, which says so of
                        all that was appended before it */
    ARBITER_SERVE,   /* members may connect now */
    ARBITER_SEND,    /* to (an incarnation), bytes: a frame */
    ARBITER_HANG_UP, /* to: its connection ends, after what it was sent */
    ARBITER_END,     /* the job is done */
    ARBITER_FAILED,  /* bytes: why. The job has ended so */
    /* for people: */
    ARBITER_ASIDE,  /* bytes: which record is set aside, and why */
    ARBITER_HANGS,  /* to: it is expelled; bytes: why */
    ARBITER_OPENED, /* a generation */
    ARBITER_LOST, /* to: left out of the generation that follows; record: enum rendezvous_reason */
    ARBITER_LEASER_LOST, /* to: its leases go to others; record: the same */
    ARBITER_LOST_AGAIN,  /* as ARBITER_LOST, where its leases were lost before: people were told */
};

struct arbiter_effect {
    enum arbiter_effect_kind kind;
    uint32_t record; /* enum entry_kind, or a reason */
    uint64_t to;
    size_t offset; /* of its bytes; equal frames to several members are there once */
    size_t count;
};

struct arbiter_effects {
    struct arbiter_effect *list;
    size_t count;
    size_t room;
    struct buf bytes;
};

void arbiter_effects_init(struct arbiter_effects *effects);
void arbiter_effects_done(struct arbiter_effects *effects);
void arbiter_effects_clear(struct arbiter_effects *effects);
int arbiter_effects_add(struct arbiter_effects *effects, struct arbiter_effect effect,
                        struct muster_err *err);
const uint8_t *arbiter_effect_bytes(const struct arbiter_effects *effects,
                                    const struct arbiter_effect *effect);
