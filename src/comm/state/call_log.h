/* How calls are told apart, and the records that each rank keeps of its own calls. Layer: comm;
 * see call_log.c. */
#pragma once

#include "comm/state/state.h"
#include "comm/state/types.h"

/* The shape of a call without root, operation and counts. */
static inline uint64_t call_log_shape(enum muster_collective kind, enum muster_type type)
{
    return (uint64_t)kind | (uint64_t)type << 8;
}
/* Sets what must be equal on all ranks, from the rest of it. */
void call_log_describe(struct prepared *call, const struct types_kind *kind, int size);
/* What makes calls differ, in one word; and that with the call's number, in the half word that
 * travels with every round and stands in every slot. */
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
/* A rank may leave a rooted call before another has entered it. What it was goes into the
 * signatures of all later calls: ranks that differ in it cannot agree in any of them. */
static inline uint64_t call_log_history(uint64_t history, uint64_t digest)
{
    return (history ^ digest) * 0xff51afd7ed558ccdu + 1;
}
/* Says what this rank is doing, for the others' error messages; before its first round. */
static inline void call_log_write(struct muster_comm *comm, uint64_t number, uint64_t shape,
                                  uint64_t count)
{
    struct flight_call *record = &comm->control->flight.calls[number % FLIGHT_CALLS];
    atomic_store_explicit(&record->number, 0, memory_order_relaxed); /* of an older call */
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&record->shape, shape, memory_order_relaxed);
    atomic_store_explicit(&record->count, count, memory_order_relaxed);
    atomic_store_explicit(&record->number, number, memory_order_release);
}
/* This rank has left the call. */
static inline void call_log_end(struct muster_comm *comm, uint64_t number)
{
    struct flight_call *record = &comm->control->flight.calls[number % FLIGHT_CALLS];
    atomic_store_explicit(&record->ended, number, memory_order_release);
}
/* Called after a step of a message: others can see whom it waits for, until it no longer does. */
void call_log_message(struct muster_comm *comm, struct task *task, bool waits);
/* It has entered this call, or a later one whose record has taken its place. */
static inline bool call_log_has(const struct control *control, uint64_t number)
{
    const struct flight_call *record = &control->flight.calls[number % FLIGHT_CALLS];
    return atomic_load_explicit(&record->number, memory_order_acquire) >= number;
}
/* A look that a loop of small calls can afford: their record of this call is there, and differs
 * from ours. For certain that is so where failure_compare says it. */
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
/* First step of a task on its lane: publishes the call's record. */
void call_log_begin(struct muster_comm *comm, struct task *task);
