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
    uint32_t round;        /* the number of rounds of all calls before this one, equal on all
                              ranks */
    uint32_t owner_turn;   /* the same for the turns of owner_reduce.c or pairwise.c, of which
                              only one uses the slots */
    _Atomic bool running;  /* whether a thread, the holder of the lane, steps its requests:
                              lane_enter */
    pthread_mutex_t queue; /* held to change the list's end, unless the lane's holder appends */
    struct muster_request *_Atomic first;
    struct muster_request *_Atomic last;
    _Atomic unsigned appended;   /* requests so far; written by the thread that starts calls */
    _Atomic unsigned ended;      /* requests that ended so far; written by the holder of the lane */
    uint64_t *words;             /* COMM_WORDS from each rank, which stages send to each other */
    struct hierarchy *hierarchy; /* hierarchy.c; NULL: there is one host, or each rank has its
                                    own */
};

/* Returns how many requests are under way. It misses no change that the calling thread has made or
 * seen: requests that it has appended, or seen to end. */
static inline int lane_count(const struct lane *lane)
{
    unsigned ended = atomic_load_explicit(&lane->ended, memory_order_acquire);
    return (int)(atomic_load_explicit(&lane->appended, memory_order_acquire) - ended);
}

/* Whether lane_count is 0, by one load. */
static inline bool lane_is_empty(const struct lane *lane)
{
    return !atomic_load_explicit(&lane->last, memory_order_acquire);
}
