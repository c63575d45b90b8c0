/* A world that reduces without end until something is done to its last rank, and what each rank
 * then said. Tests and benchmarks only. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <muster/comm.h>

enum scene_fault {
    SCENE_NOTHING, /* all end in good order */
    SCENE_KILL,
    SCENE_STOP, /* for good: until the survivors have learnt of it */
    SCENE_CUT,  /* from the network */
};

enum { SCENE_MAX_RANKS = 16, SCENE_TEXT_BYTES = MUSTER_ERR_TEXT_BYTES };

/* What a rank says. */
struct scene_note {
    _Atomic uint64_t entered; /* reductions */
    _Atomic uint64_t rounds;  /* those that ended well, each checked */
    _Atomic int code;         /* of the first error; 0: none */
    int about;                /* its rank */
    int64_t after_ns;         /* the fault */
    enum muster_peer_state victim;
    char text[SCENE_TEXT_BYTES];
    bool wrong;     /* a sum */
    bool disturbed; /* memory of a survivor changed after its error */
};

struct scene {
    int size;
    const char *transport; /* as for a world; NULL: auto */
    bool networks;         /* each rank has a network namespace of its own: network_open first */
    bool process_spaces;   /* … PID namespace */
    bool direct;           /* reduces memory of muster_comm_alloc */
    size_t count;          /* f32, each time */
    size_t memory_bytes;   /* that the last rank touches first */
    enum scene_fault fault;
    int64_t for_ms;      /* runs that long before the fault */
    int load;            /* processes that do nothing but run, once all ranks do */
    int64_t pause_ms;    /* the last rank is stopped and continued so long, again and again */
    const char *rate;    /* of the network to each rank, for tc(8); with latency */
    const char *latency; /* of the queue before it */
    double loss;         /* of what arrives at each rank */
    int64_t heartbeat_timeout_ms; /* 0: the default */
    int64_t call_timeout_s;       /* 0: 20 */
};

/* 0: every rank but the victim ended by itself, with 0. The notes are valid until the next scene.
 */
int scene_run(const struct scene *scene);
const struct scene_note *scene_note(int rank);

/* Success means that every rank had entered: no rank has seen more of them than any other has
 * entered. */
bool scene_is_consistent(const struct scene *scene);

/* Processes that do nothing but run, to oversubscribe the processors. */
void scene_load_start(int processes);
void scene_load_stop(void);
