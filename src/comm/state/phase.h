/* The life of a communicator: one phase, which only goes forward, as the table in phase.c says.
 * The code that closed the communicator is in the same word. Beside it is what the user's thread
 * does with the communicator, so that an abort knows which thread to wait for.
 *
 * Layer: comm. Memory: the communicator's. Thread: any; `use` is written by the thread that makes
 * calls.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

enum comm_phase {
    COMM_OPEN,    /* calls may be made; the whole word is 0, and the fast paths test only this */
    COMM_FORMING, /* no other rank depends on this one yet */
    COMM_CLOSING, /* failed or aborted; others may still write into our memory */
    COMM_CLOSED,  /* failed or aborted; nobody else writes into our memory any more */
    COMM_LEAVING, /* as COMM_CLOSING, but freed in good order: nothing was under way */
    COMM_LEFT,
    COMM_PHASES,
};

struct comm_life {
    _Atomic int word; /* the phase, and above it the negative of the code */
};

enum { COMM_PHASE_BITS = 3 };
_Static_assert(COMM_PHASES <= 1 << COMM_PHASE_BITS, "a phase fits");

/* Returns 0, or the code that closed the communicator. */
static inline int phase_code(const struct comm_life *life)
{
    return -(atomic_load_explicit(&life->word, memory_order_acquire) >> COMM_PHASE_BITS);
}

static inline enum comm_phase phase_of(const struct comm_life *life)
{
    int word = atomic_load_explicit(&life->word, memory_order_acquire);
    return (enum comm_phase)(word & ((1 << COMM_PHASE_BITS) - 1));
}

/* Whether it is closed and no other process writes into our memory any more. */
static inline bool phase_is_quiesced(const struct comm_life *life)
{
    enum comm_phase phase = phase_of(life);
    return phase == COMM_CLOSED || phase == COMM_LEFT;
}

static inline bool phase_is_leaving(const struct comm_life *life)
{
    enum comm_phase phase = phase_of(life);
    return phase == COMM_LEAVING || phase == COMM_LEFT;
}

bool phase_may(enum comm_phase from, enum comm_phase to);
void phase_init(struct comm_life *life);
/* Called when the communicator is formed as far as this rank can do it alone: from now on the
 * others may see this rank die. */
void phase_open(struct comm_life *life);
/* Changes to COMM_CLOSING or COMM_LEAVING. Returns false if another thread was first, whose code is
 * kept. */
bool phase_close(struct comm_life *life, enum comm_phase to, int code);
/* Called by the thread that closed the communicator. */
void phase_quiesce(struct comm_life *life);

/* ---- the thread that makes calls ---- */

/* A call that consists of several may run another call inside; when the inner call ends, the thread
 * is still in the outer one. */
enum comm_use {
    COMM_OUTSIDE = 0,
    COMM_IN_CALL = 1,    /* a call that the thread runs itself */
    COMM_IN_SEVERAL = 2, /* in a call that consists of several, between the inner calls */
    COMM_IN_CALL_OF_SEVERAL = COMM_IN_CALL | COMM_IN_SEVERAL,
};

/* Needs a fence between this store and the check of the phase, as progress_drain says. A repeated
 * use_enter changes nothing. */
static inline void use_enter(_Atomic int *use, enum comm_use what)
{
    int before = atomic_load_explicit(use, memory_order_relaxed);
    atomic_store_explicit(use, before | (int)what, memory_order_relaxed);
}

static inline void use_leave(_Atomic int *use, enum comm_use what)
{
    int before = atomic_load_explicit(use, memory_order_relaxed);
    atomic_store_explicit(use, before & ~(int)what, memory_order_release);
}

static inline bool use_is(_Atomic int *use, enum comm_use what)
{
    return atomic_load_explicit(use, memory_order_acquire) & (int)what;
}
