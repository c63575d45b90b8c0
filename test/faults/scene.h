/* A world that reduces without end until a fault happens to its last rank, and what each rank then
 * reported. Tests and benchmarks only. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <muster/comm.h>

enum scene_fault {
    SCENE_NOTHING, /* all ranks end normally */
    SCENE_KILL,
    SCENE_STOP, /* stopped until all survivors have noticed it */
    SCENE_CUT,  /* the rank loses its network */
};

enum { SCENE_MAX_RANKS = 16, SCENE_TEXT_BYTES = MUSTER_ERR_TEXT_BYTES };

/* What a rank reports. */
struct scene_note {
    _Atomic uint64_t entered; /* reductions that the rank has begun */
    _Atomic uint64_t rounds;  /* reductions that succeeded; each sum is checked */
    _Atomic int code;         /* of the first error; 0: none */
    int about;                /* the rank that the error names */
    int64_t after_ns;         /* time from the fault to the error */
    enum muster_peer_state victim;
    char text[SCENE_TEXT_BYTES];
    bool wrong;     /* a sum was wrong */
    bool disturbed; /* memory of a survivor changed after its error */
};

struct scene {
    int size;
    const char *transport; /* as for a world; NULL: auto */
    bool networks;         /* each rank has a network namespace of its own: network_open first */
    bool process_spaces;   /* each rank has a PID namespace of its own */
    bool direct;           /* reduces memory of muster_comm_alloc */
    size_t count;          /* of f32, in each reduction */
    size_t memory_bytes;   /* memory that the last rank touches first */
    enum scene_fault fault;
    int64_t for_ms;               /* the time before the fault */
    int load;                     /* processes that do nothing but run, once all ranks do */
    int64_t pause_ms;             /* the last rank is stopped for this time, again and again */
    const char *rate;             /* of the network to each rank, for tc(8); with latency */
    const char *latency;          /* of the queue before it */
    double loss;                  /* probability that an arriving packet is lost, at each rank */
    int64_t heartbeat_timeout_ms; /* 0: the default */
    int64_t call_timeout_s;       /* 0: 20 */
};

/* Returns 0 if every rank but the victim ended by itself with 0. The notes are valid until the next
 * scene. */
int scene_run(const struct scene *scene);
const struct scene_note *scene_note(int rank);

/* Whether no rank has finished more reductions than any other rank has begun: a reduction succeeds
 * only after every rank has begun it. */
bool scene_is_consistent(const struct scene *scene);

/* Starts processes that only use processor time, to oversubscribe the processors. */
void scene_load_start(int processes);
void scene_load_stop(void);
