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
    struct schedule_exchange plan; /* its ranks are indices of the team */
    const struct team *team;
    const char *in;
    char *out;
    reduce_fn reduce;
    int divisor;
    bool begun;
    uint32_t base;      /* of the boards' rounds */
    uint32_t link_base; /* of the links' rounds */
    struct schedule_rounds at;
};

/* A send or a receive. */
struct transfer {
    size_t done; /* sent, with the header */
    bool ended;
    bool too_big;
    struct muster_message message;
    struct task *next;  /* posted, waiting to be sent to the same rank, or ended */
    uint64_t offer_end; /* of a send that was offered: its place in the stream: offer.h */
    int recorded;       /* 1 + its place in the flight record; 0: it does not wait */
};

/* Room for what an algorithm keeps: only algorithm/way.h knows it. */
enum { TASK_WAY_BYTES = 512 };

struct task {
    struct prepared call;
    uint64_t number;
    uint32_t signature;
    int lane;
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
