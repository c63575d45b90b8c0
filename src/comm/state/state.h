/* What a communicator is made of: peers, teams, lanes (lane.h), memory (allocation.h), and the
 * tasks that run on it (task.h).
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
#include "comm/shm/heartbeat.h"
#include "comm/shm/segment.h"
#include "comm/state/allocation.h"
#include "comm/state/lane.h"
#include "comm/state/phase.h"
#include "comm/state/task.h"
#include "comm/system/fork.h"
#include "schedule/hierarchy.h"
#include "schedule/trial.h"
#include "schedule/tuning.h"

struct link;

struct peer {
    int local;           /* index on this host, or -1 */
    int host;            /* lowest rank there */
    bool killable;       /* its process id means the same here */
    struct link *link;   /* to a peer on another host */
    _Atomic int state;   /* enum muster_peer_state, as far as the heartbeat thread knows */
    _Atomic bool traced; /* said last that a debugger holds it; on another host */
    bool heard;          /* gave a sign of life; the rest is the heartbeat thread's */
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

/* Rooted calls through slots of their own: rooted.c. */
struct rooted_turns {
    uint64_t next;     /* that this rank takes part in; equal on all ranks */
    uint64_t all_left; /* so many have all others left, as far as this rank has looked */
};

/* Room for the plan: only algorithm/way.h knows it. */
enum { COMM_PLAN_BYTES = 384 };

/* The kinds from all-gather to all-to-all; sizes by factors of four. */
enum { COMM_COPY_KINDS = 5, COMM_COPY_SIZES = 6 };

struct muster_comm {
    int rank;
    int size;
    uint64_t generation;
    uint32_t process; /* heartbeat_process() of the owner */
    struct peer *peers;

    int local_rank;
    int local_size;
    int *locals;     /* local index -> rank */
    char *transport; /* what the options said; NULL: as MUSTER_TRANSPORT says */
    bool all_local;
    bool reads; /* all are on this host, and as far as is known each may read the others' memory */
    struct schedule_trial copies[COMM_COPY_KINDS][COMM_COPY_SIZES]; /* rank 0's: large_copy.c */
    size_t capacity; /* bytes that a rank publishes in a round of the main lane */
    struct team everyone;
    struct team here;   /* the ranks of this host */
    struct team across; /* this rank and those that lead with it on the other hosts */
    struct schedule_hosts *hosts;
    bool oversubscribed;                  /* more ranks than processors: never spin */
    enum schedule_processor processor;    /* as this rank found it */
    const struct schedule_tuning *tuning; /* that all ranks of this host share */
    struct segment segment;
    struct control *control; /* ours */
    struct heartbeat_watch watch;
    struct fork_watch fork;
    bool witnessed; /* it holds the witness */

    struct lane lanes[LANES];
    alignas(void *) char plan[COMM_PLAN_BYTES]; /* of the thread that makes calls: way_plan() */
    _Atomic uint64_t started; /* collectives, with the barrier that ended forming */
    _Atomic uint64_t completed;
    _Atomic int use;       /* enum comm_use: what the user's thread is inside of */
    struct comm_life life; /* its phase, and the code that closed it */
    bool fenced;           /* no membarrier: each call orders use and life itself */
    _Atomic uint32_t
        last_word; /* what remote_heartbeat.c tells the others of that; 0: nothing yet */
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
    _Atomic unsigned visits;         /* of such threads so far … */
    unsigned visits_seen;            /* … when the progress thread looked last */
    struct muster_comm *next_active; /* background.c */
    bool attended;                   /* they come so often that the progress thread stays away */
    _Atomic bool active;
    int naps; /* of the progress thread, since there was work */
    int pins; /* the progress thread uses it */
    struct rooted_turns rooted;
    uint64_t history;             /* of the rooted calls that were started: call_log_history() */
    _Atomic uint64_t last_rooted; /* number of the last of those; 0: there was none */
    char description[160];
};

/* Users count their own calls from 1. */
static inline uint64_t comm_user_number(uint64_t number)
{
    return number > 0 ? number - 1 : 0;
}

/* MUSTER_EINVAL in a process that was forked from the owner. */
static inline int comm_check_own(const struct muster_comm *comm, struct muster_err *err)
{
    return comm->process == heartbeat_process()
               ? 0
               : muster_fail(err, MUSTER_EINVAL,
                             "this process was forked: make a communicator of its own");
}
