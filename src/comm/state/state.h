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
    int local;           /* its index on this host, or -1 */
    int host;            /* the lowest rank on its host */
    bool killable;       /* its process id means the same here */
    struct link *link;   /* to a peer on another host */
    _Atomic int state;   /* enum muster_peer_state, as far as the heartbeat thread knows */
    _Atomic bool traced; /* a peer on another host: its last report said that a debugger holds it */
    bool heard;          /* it gave a sign of life; this and the next fields belong to the
                            heartbeat thread */
    uint32_t beats;
    int silent_beats;
};

/* Ranks that exchange data with each other. */
struct team {
    int size; /* 0: this rank is not in it */
    int index;
    int *ranks;
    bool boards; /* some of the others are on this host */
    bool links;  /* some of the others are on other hosts */
};

/* Rooted calls through slots of their own: rooted.c. */
struct rooted_turns {
    uint64_t next;     /* turn of the next call; equal on all ranks */
    uint64_t all_left; /* how many calls all others have left, as far as this rank has looked */
};

/* Room for the plan, whose content only algorithm/way.h knows. */
enum { COMM_PLAN_BYTES = 384 };

/* Counts the kinds from all-gather to all-to-all, and sizes in steps of a factor of four. */
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
    char *transport; /* as the options say; NULL: as MUSTER_TRANSPORT says */
    bool all_local;
    bool reads; /* all are on this host, and as far as known each may read the others' memory */
    struct schedule_trial copies[COMM_COPY_KINDS][COMM_COPY_SIZES]; /* only rank 0 uses them:
                                                                       large_copy.c */
    size_t capacity; /* bytes that a rank publishes in a round of the main lane */
    struct team everyone;
    struct team here;   /* the ranks of this host */
    struct team across; /* this rank and the ranks on other hosts that have the same index there */
    struct schedule_hosts *hosts;
    bool oversubscribed;                  /* more ranks than processors: never spin */
    enum schedule_processor processor;    /* as this rank found it; other ranks may differ */
    const struct schedule_tuning *tuning; /* the same for all ranks of this host */
    struct segment segment;
    struct control *control; /* this rank's own */
    struct heartbeat_watch watch;
    struct fork_watch fork;
    bool witnessed; /* this communicator holds the witness */

    struct lane lanes[LANES];
    alignas(void *) char plan[COMM_PLAN_BYTES]; /* of the thread that makes calls; see way_plan() */
    _Atomic uint64_t started; /* number of collectives, including the barrier that ends forming */
    _Atomic uint64_t completed;
    _Atomic int use;       /* enum comm_use: what kind of call the user's thread is in */
    struct comm_life life; /* its phase, and the code that closed it */
    bool fenced;           /* no membarrier: each call orders use and life itself */
    _Atomic uint32_t
        last_word; /* what remote_heartbeat.c sends to the others when it closes; 0: nothing yet */
    _Atomic bool input_touched; /* a call that failed may have changed its input */
    int64_t notice_ms;          /* a call that waits for this long prints which ranks it waits
                                   for; 0: never */
    _Atomic int64_t timeout_ms;
    int64_t heartbeat_timeout_ms;
    int (*interrupted)(void *context);
    void *interrupted_context;

    pthread_mutex_t allocating;     /* guards the fields that follow: held by the thread that makes
                                       calls to change them, and by a thread that aborts to read them */
    struct allocation *allocations; /* in the same places on all ranks */
    int num_allocations;            /* including released ones, whose places are used again */
    int live_allocations;
    struct messages *messages; /* message.c */
    _Atomic int helpers;       /* threads in muster_request_wait, which step the lanes themselves */
    _Atomic int helped;        /* calls in a row that such a thread ended: background.c */
    _Atomic unsigned visits;   /* how often such threads came so far */
    unsigned visits_seen;      /* the value of visits when the progress thread looked last */
    struct muster_comm *next_active; /* background.c */
    bool attended;                   /* such threads come so often that the progress thread stays
                                        away */
    _Atomic bool active;
    int naps; /* of the progress thread, since there was work last */
    int pins; /* how often the progress thread has pinned it */
    struct rooted_turns rooted;
    uint64_t history;             /* checksum of the rooted calls that were started:
                                     call_log_history() */
    _Atomic uint64_t last_rooted; /* number of the last rooted call; 0: there was none */
    char description[160];
};

/* Users count their own calls from 1. */
static inline uint64_t comm_user_number(uint64_t number)
{
    return number > 0 ? number - 1 : 0;
}

/* Returns MUSTER_EINVAL in a process that was forked from the owner. */
static inline int comm_check_own(const struct muster_comm *comm, struct muster_err *err)
{
    return comm->process == heartbeat_process()
               ? 0
               : muster_fail(err, MUSTER_EINVAL,
                             "this process was forked: make a communicator of its own");
}
