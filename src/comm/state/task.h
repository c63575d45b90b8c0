/* A call that is being run, and what the code that runs it keeps in it: `exchange`
 * algorithm/exchange.c and tcp/frames.c, `way` the other algorithms (algorithm/way.h), `transfer`
 * messages/message.c.
 *
 * Layer: comm. Memory: the caller's stack, or a request's. Thread: the holder of its lane.
 */
#pragma once

#include <stdalign.h>
#include <stdbool.h>

#include "comm/state/lane.h"
#include "comm/state/prepared.h"
#include "schedule/exchange.h"
#include "schedule/rounds.h"

struct team;
struct task;

/* A schedule that is run within a team. */
struct exchange {
    struct schedule_exchange plan; /* its ranks are indices in the team */
    const struct team *team;
    const char *in;
    char *out;
    reduce_fn reduce;
    int divisor;
    bool begun;
    uint32_t base;      /* number of its first round on boards */
    uint32_t link_base; /* number of its first round on links */
    struct schedule_rounds at;
};

/* A send or a receive. */
struct transfer {
    size_t done; /* bytes that were sent, including the header */
    bool ended;
    bool too_big;
    struct muster_message message;
    struct task *next;  /* the next task that is posted, waits to be sent to the same rank, or
                           has ended */
    uint64_t offer_end; /* for a send that was offered: the end of its offer in the stream
                           (offer.h) */
    int recorded;       /* 1 + its place in the flight record; 0: it is not recorded */
};

/* Room for the state of an algorithm, which only algorithm/way.h knows. */
enum { TASK_WAY_BYTES = 512 };

struct task {
    struct prepared call;
    uint64_t number;
    uint32_t signature;
    int lane;
    int (*step)(struct muster_comm *comm, struct task *task, struct muster_err *err);
    int waiting; /* the rank that the task waits for when a step returned 0; MUSTER_ANY_SOURCE:
                    any rank */
    bool begun;
    bool queued;               /* in a lane, whose holder reads the messages of all its tasks */
    bool moved;                /* something was done since this was last cleared */
    uint32_t link_rounds;      /* rounds that this call has taken on links so far */
    const struct team *linked; /* the ranks whose frames it needs; NULL: none */
    struct exchange exchange;
    alignas(void *) char way[TASK_WAY_BYTES]; /* way_of() */
    struct transfer transfer;
    uint64_t words[COMM_WORDS]; /* of this rank; they are gathered into lane->words */
};
