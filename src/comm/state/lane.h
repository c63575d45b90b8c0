/* A lane as data; progress/lane.h steps it. Layer: comm. Memory: the communicator's. Thread: as
 * each field says. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct hierarchy;
struct muster_request;

enum { COMM_WORDS = 4 };

/* Calls that must run one after the other. */
struct lane {
    int index;
    uint32_t round;        /* rounds that calls before this one took, equal on all ranks */
    uint32_t owner_turn;   /* as round, for owner_reduce.c or pairwise.c: the slots are one's or the
                              other's */
    _Atomic bool running;  /* a thread steps its requests, its holder: lane_enter */
    pthread_mutex_t queue; /* held to change the end of the list, but by the holder to append */
    struct muster_request *_Atomic first;
    struct muster_request *_Atomic last;
    _Atomic unsigned appended;   /* requests so far; by the thread that starts calls … */
    _Atomic unsigned ended;      /* … and by the holder */
    uint64_t *words;             /* COMM_WORDS from each rank: what stages tell each other */
    struct hierarchy *hierarchy; /* hierarchy.c; NULL: one host, or each rank has its own */
};

/* Requests that are under way; of those that the calling thread has appended, or seen to end, none
 * is missed. */
static inline int lane_count(const struct lane *lane)
{
    unsigned ended = atomic_load_explicit(&lane->ended, memory_order_acquire);
    return (int)(atomic_load_explicit(&lane->appended, memory_order_acquire) - ended);
}

/* Whether the count is 0, by one load. */
static inline bool lane_is_empty(const struct lane *lane)
{
    return !atomic_load_explicit(&lane->last, memory_order_acquire);
}
