/* What a communicator is made of: peers, teams, lanes, memory, and the tasks that run on it.
 *
 * Layer: comm; for the files of this folder only. Memory: struct muster_comm owns all it points to.
 * Thread: as each field says.
 */
#pragma once

#include <pthread.h>
#include <stdalign.h>
#include <stdbool.h>

#include <muster/comm.h>

#include "comm/reduce/reduce.h"
#include "comm/shm/life.h"
#include "comm/shm/segment.h"
#include "comm/state/phase.h"
#include "comm/system/fork.h"
#include "schedule/exchange.h"
#include "schedule/hierarchy.h"

enum { COMM_MAX_RANKS = MUSTER_MAX_RANKS, COMM_WORDS = 4 };
_Static_assert((int)COMM_MAX_RANKS <= (int)REDUCE_MAX_SOURCES, "all ranks can be folded");

struct link;
struct task;

struct peer {
    int local;         /* index on this host, or -1 */
    int host;          /* lowest rank there */
    bool killable;     /* its process id means the same here */
    struct link *link; /* to a peer on another host */
    _Atomic int state; /* enum muster_peer_state, as far as the heartbeat thread knows */
    bool heard;        /* gave a sign of life; the rest is the heartbeat thread's */
    uint32_t beats;
    int silent_beats;
};

/* Ranks that exchange with each other. */
struct team {
    int size; /* 0: this rank is not in it */
    int index;
    int *ranks;
    bool boards; /* some of the others are on this host … */
    bool links;  /* … and some are not */
};

/* Calls that must run one after the other. */
struct lane {
    int index;
    uint32_t round;      /* rounds that calls before this one took, equal on all ranks */
    uint32_t owner_turn; /* as round, for owner_reduce.c or pairwise.c: the slots are one's or the
                            other's */
    pthread_mutex_t running; /* held by the thread that steps the first request */
    pthread_mutex_t queue;   /* held to change the list */
    struct muster_request *_Atomic first;
    struct muster_request *last;
    _Atomic int in_flight;
    uint64_t *words;             /* COMM_WORDS from each rank: what stages tell each other */
    struct hierarchy *hierarchy; /* hierarchy.c; NULL: one host, or each rank has its own */
};

/* Memory of muster_comm_alloc: a part for each local rank. */
struct allocation {
    struct segment_extension parts; /* base NULL: released */
    size_t size_bytes;              /* of what the user sees of a part */
};

enum { COMM_MAX_ALLOCATIONS = 1024, ALLOCATION_SKEW_LINES = 27 };

/* Where the user's memory of a rank starts. Not at the same offset in its page as another's: AMD's
 * L1 cache finds a line by a hash of its virtual address, and where two hashes and offsets are
 * equal, as they are for half of all mappings, a loop over both takes four times as long. */
static inline char *allocation_start(const struct allocation *allocation, int local)
{
    size_t skew = (size_t)local * ALLOCATION_SKEW_LINES * SEGMENT_LINE % SEGMENT_PAGE;
    return allocation->parts.base + (size_t)local * allocation->parts.part_bytes + skew;
}

/* Room for what the algorithms keep: only their own header knows it (algorithm/way.h). */
enum { TASK_WAY_BYTES = 512, COMM_PLAN_BYTES = 384 };

struct muster_comm {
    int rank;
    int size;
    uint64_t generation;
    uint32_t process; /* life_process() of the owner */
    struct peer *peers;

    int local_rank;
    int local_size;
    int *locals;     /* local index -> rank */
    char *transport; /* what the options said; NULL: as MUSTER_TRANSPORT says */
    bool all_local;
    size_t capacity; /* bytes that a rank publishes in a round of the main lane */
    struct team everyone;
    struct team here;   /* the ranks of this host */
    struct team across; /* this rank and those that lead with it on the other hosts */
    struct schedule_hosts *hosts;
    bool oversubscribed; /* more ranks than processors: never spin */
    bool intel;          /* this host's processors: processor.h */
    struct segment segment;
    struct control *control; /* ours */
    struct life_watch watch;
    struct fork_watch fork;
    bool witnessed; /* it holds the witness */

    struct lane lanes[LANES];
    alignas(void *) char plan[COMM_PLAN_BYTES]; /* of the thread that makes calls: way_plan() */
    _Atomic uint64_t started; /* collectives, with the barrier that ended forming */
    _Atomic uint64_t completed;
    _Atomic int use;            /* enum comm_use: what the user's thread is inside of */
    struct comm_life life;      /* its phase, and the code that closed it */
    bool fenced;                /* no membarrier: each call orders use and life itself */
    _Atomic uint32_t last_word; /* what heartbeat.c tells the others of that; 0: nothing yet */
    _Atomic bool input_touched; /* of a call that failed */
    int64_t notice_ms;          /* after which a call that waits says for whom; 0: never */
    _Atomic int64_t timeout_ms;
    int64_t heartbeat_timeout_ms;
    int (*interrupted)(void *context);
    void *interrupted_context;

    pthread_mutex_t allocating; /* held by the thread that makes calls to change what follows, and
                                   by one that aborts to read it */
    struct allocation *allocations; /* at the same places on all ranks */
    int num_allocations;            /* with released ones, whose places are taken again */
    int live_allocations;
    struct messages *messages; /* message.c */
    _Atomic int helpers; /* threads in muster_request_wait, which step the lanes themselves … */
    _Atomic int helped;  /* … and calls in a row that such a thread ended: background.c */
    struct muster_comm *next_active; /* background.c */
    bool active;
    int naps; /* of the progress thread, since there was work */
    int pins; /* the progress thread uses it */
    char description[160];
};

struct exchange {
    struct schedule_exchange plan; /* its ranks are indices of the team */
    const struct team *team;
    const char *in;
    char *out;
    reduce_fn fold;
    int divisor;
    bool begun;
    uint32_t base;      /* of the boards' rounds */
    uint32_t link_base; /* of the links' rounds */
    size_t published;
    size_t consumed;
};

/* A send or a receive. */
struct transfer {
    size_t done; /* sent, with the header */
    bool ended;
    bool too_big;
    struct muster_message message;
    struct task *next_posted;
    int recorded; /* 1 + its place in the flight record; 0: it does not wait */
};

struct task {
    struct muster_call call;
    uint64_t number;
    uint32_t signature;
    int lane;
    size_t unit;
    int (*step)(struct muster_comm *comm, struct task *task, struct muster_err *err);
    int waiting; /* for this rank, when a step returned 0; MUSTER_ANY_SOURCE: for any */
    bool begun;
    bool queued;               /* in a lane, whose holder reads messages for all in it */
    bool moved;                /* something was done since this was last cleared */
    uint32_t link_rounds;      /* that this call took so far, on links */
    const struct team *linked; /* whose frames it needs; NULL: nobody's */
    struct exchange exchange;
    alignas(void *) char way[TASK_WAY_BYTES]; /* way_of() */
    struct transfer transfer;
    uint64_t words[COMM_WORDS]; /* of this rank, to lane->words */
};

/* Users count their own calls from 1. */
static inline uint64_t comm_user_number(uint64_t number)
{
    return number > 0 ? number - 1 : 0;
}

/* MUSTER_EINVAL in a process that was forked from the owner. */
static inline int comm_check_own(const struct muster_comm *comm, struct muster_err *err)
{
    return comm->process == life_process()
               ? 0
               : muster_fail(err, MUSTER_EINVAL,
                             "this process was forked: make a communicator of its own");
}
