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
    ARBITER_APPEND, /* record (enum entry_kind), bytes: to the journal, before the next effects */
    ARBITER_SYNC, /* make all that was appended durable; then the event DURABLE, which refers to all
                     that was appended before SYNC */
    ARBITER_SERVE,   /* members may connect now */
    ARBITER_SEND,    /* to (an incarnation), bytes: a frame */
    ARBITER_HANG_UP, /* to: end its connection, after all that was sent to it */
    ARBITER_END,     /* the job is done */
    ARBITER_FAILED,  /* bytes: why. The job has ended with a failure */
    /* information for people: */
    ARBITER_ASIDE,       /* bytes: which record is set aside, and why */
    ARBITER_HANGS,       /* to: it is expelled; bytes: why */
    ARBITER_OPENED,      /* a generation */
    ARBITER_LOST,        /* to: left out of the next generation; record: enum rendezvous_reason */
    ARBITER_LEASER_LOST, /* to: its leases are given to others; record: enum rendezvous_reason */
    ARBITER_LOST_AGAIN,  /* as ARBITER_LOST, for a process whose leases were lost before: this was
                            reported then */
};

struct arbiter_effect {
    enum arbiter_effect_kind kind;
    uint32_t record; /* enum entry_kind, or a reason */
    uint64_t to;
    size_t offset; /* of its bytes; equal frames to several members exist once */
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
