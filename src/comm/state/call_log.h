/* How calls are told apart, and the records that each rank keeps of its own calls. Layer: comm;
 * see call_log.c. */
#pragma once

#include "comm/state/state.h"
#include "comm/state/types.h"

/* Returns the shape of a call without root, operation and counts. */
static inline uint64_t call_log_shape(enum muster_collective kind, enum muster_type type)
{
    return (uint64_t)kind | (uint64_t)type << 8;
}
/* Sets the fields that must be equal on all ranks, from the other fields. */
void call_log_describe(struct prepared *call, const struct types_kind *kind, int size);
/* call_log_digest puts what distinguishes calls into one word. call_log_sign adds the call's
 * number, and returns the half word that goes with every round and is in every slot. */
static inline uint64_t call_log_digest(uint64_t generation, uint64_t shape, uint64_t count)
{
    uint64_t mix = (generation + 1) * 0xbf58476d1ce4e5b9u;
    mix = (mix ^ (mix >> 31) ^ shape ^ 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
    mix = (mix ^ (mix >> 29) ^ count) * 0xc4ceb9fe1a85ec53u;
    return mix ^ (mix >> 32);
}
static inline uint32_t call_log_sign(uint64_t number, uint64_t digest)
{
    return (uint32_t)((number + digest) * 0x9e3779b97f4a7c15u >> 32);
}
/* A rank may leave a rooted call before another has entered it. So the call's digest goes into the
 * signatures of all later calls: ranks that made different calls cannot agree in any later one. */
static inline uint64_t call_log_history(uint64_t history, uint64_t digest)
{
    return (history ^ digest) * 0xff51afd7ed558ccdu + 1;
}
/* Records what this rank calls, for the others' error messages. Called before its first round. */
static inline void call_log_write(struct muster_comm *comm, uint64_t number, uint64_t shape,
                                  uint64_t count)
{
    struct flight_call *record = &comm->control->flight.calls[number % FLIGHT_CALLS];
    atomic_store_explicit(&record->number, 0, memory_order_relaxed); /* an older call's record */
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&record->shape, shape, memory_order_relaxed);
    atomic_store_explicit(&record->count, count, memory_order_relaxed);
    atomic_store_explicit(&record->number, number, memory_order_release);
}
/* Records that this rank has left the call. */
static inline void call_log_end(struct muster_comm *comm, uint64_t number)
{
    struct flight_call *record = &comm->control->flight.calls[number % FLIGHT_CALLS];
    atomic_store_explicit(&record->ended, number, memory_order_release);
}
/* Called after a step of a message: others can see which rank it waits for, as long as it waits. */
void call_log_message(struct muster_comm *comm, struct task *task, bool waits);
/* Whether the rank has entered this call, or a later one whose record has replaced it. */
static inline bool call_log_has(const struct control *control, uint64_t number)
{
    const struct flight_call *record = &control->flight.calls[number % FLIGHT_CALLS];
    return atomic_load_explicit(&record->number, memory_order_acquire) >= number;
}
/* Whether their record of this call exists and differs from ours. This check is cheap enough for a
 * loop of small calls; only failure_compare makes certain that the calls differ. */
static inline bool call_log_differs(const struct control *theirs, const struct control *ours,
                                    uint64_t number)
{
    const struct flight_call *there = &theirs->flight.calls[number % FLIGHT_CALLS];
    const struct flight_call *here = &ours->flight.calls[number % FLIGHT_CALLS];
    return atomic_load_explicit(&there->number, memory_order_acquire) == number &&
           (atomic_load_explicit(&there->shape, memory_order_relaxed) !=
                atomic_load_explicit(&here->shape, memory_order_relaxed) ||
            atomic_load_explicit(&there->count, memory_order_relaxed) !=
                atomic_load_explicit(&here->count, memory_order_relaxed));
}
/* The first step of a task on its lane: publishes the call's record. */
void call_log_begin(struct muster_comm *comm, struct task *task);
