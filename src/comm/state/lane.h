/* A lane as data; progress/lane.h steps it. Layer: comm. Memory: the communicator's. Thread: as
 * each field says. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

struct hierarchy;
struct muster_request;

enum { COMM_WORDS = 4 };

/* Calls that must run one after the other. */
struct lane {
    int index;
    uint32_t round;      /* rounds that calls before this one took, equal on all ranks */
    uint32_t owner_turn; /* as round, for owner_reduce.c or pairwise.c: the slots are one's or the
                            other's */
    pthread_mutex_t running; /* held by the thread that steps the first request */
    pthread_mutex_t queue;   /* held to change the list */
    struct muster_request *_Atomic first;
    struct muster_request *_Atomic last;
    _Atomic int in_flight;
    uint64_t *words;             /* COMM_WORDS from each rank: what stages tell each other */
    struct hierarchy *hierarchy; /* hierarchy.c; NULL: one host, or each rank has its own */
};
