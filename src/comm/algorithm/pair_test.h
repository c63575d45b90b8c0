/* Two ranks of one host in this process, whose tasks a test steps by hand. So the test decides
 * what one rank has done before the other comes. Tests only. */
#pragma once

#include "base/testing/test.h"
#include "comm/api/prepare.h"
#include "comm/state/call_log.h"
#include "comm/state/state.h"

#include <pthread.h>

enum { PAIR_TURNS = 10000, PAIR_SHARED_BYTES = 64 * 1024 };

struct pair_rank {
    struct muster_endpoint *endpoint;
    const struct muster_member *members;
    int rank;
    struct muster_comm *comm;
    void *shared; /* memory that both ranks see; NULL: none was asked for */
    bool shares;
    int result;
};

struct pair {
    struct muster_member members[2];
    struct pair_rank ranks[2];
};

static inline void *pair_form(void *context)
{
    struct pair_rank *r = context;
    struct muster_err err = MUSTER_ERR_INIT;
    r->result =
        muster_comm_form(r->endpoint, r->members, 2, r->rank, 1, 60000, NULL, &r->comm, &err);
    if (r->result == 0 && r->shares) {
        r->result = muster_comm_alloc(r->comm, PAIR_SHARED_BYTES, &r->shared, &err);
    }
    return NULL;
}

static inline void pair_open(struct pair *pair, bool shares)
{
    pthread_t threads[2];
    memset(pair, 0, sizeof *pair);
    for (int rank = 0; rank < 2; rank++) {
        struct muster_err err = MUSTER_ERR_INIT;
        pair->ranks[rank] =
            (struct pair_rank){.members = pair->members, .rank = rank, .shares = shares};
        assert_int_equal(muster_endpoint_open("127.0.0.1", &pair->ranks[rank].endpoint, &err), 0);
        muster_endpoint_member(pair->ranks[rank].endpoint, &pair->members[rank]);
    }
    for (int rank = 0; rank < 2; rank++) {
        assert_int_equal(pthread_create(&threads[rank], NULL, pair_form, &pair->ranks[rank]), 0);
    }
    for (int rank = 0; rank < 2; rank++) {
        assert_int_equal(pthread_join(threads[rank], NULL), 0);
        assert_int_equal(pair->ranks[rank].result, 0);
        assert_true(pair->ranks[rank].comm->all_local);
    }
}

static inline void pair_close(struct pair *pair)
{
    for (int r = 0; r < 2; r++) {
        muster_comm_abort(pair->ranks[r].comm); /* the tasks belong to no call */
    }
    for (int r = 0; r < 2; r++) {
        muster_comm_free(pair->ranks[r].comm);
        muster_endpoint_close(pair->ranks[r].endpoint);
    }
}

/* Makes a numbered all-reduce task of the main lane; the caller chooses its way. */
static inline void pair_task(struct muster_comm *comm, const struct muster_call *call,
                             struct task *ret)
{
    *ret = (struct task){.lane = LANE_MAIN, .number = atomic_fetch_add(&comm->started, 1) + 1};
    assert_int_equal(prepare_call(comm, call, &ret->call, NULL), 0);
    ret->signature = call_log_sign(
        ret->number,
        call_log_digest(comm->generation, ret->call.shape, ret->call.total) + comm->history);
}

/* Steps both tasks in turns until both have ended. */
static inline void pair_run(struct pair *pair, struct task *tasks)
{
    bool ended[2] = {false, false};
    for (int turn = 0; turn < PAIR_TURNS && !(ended[0] && ended[1]); turn++) {
        int peer = turn % 2;
        struct muster_err err = MUSTER_ERR_INIT;
        int r = ended[peer] ? 1 : tasks[peer].step(pair->ranks[peer].comm, &tasks[peer], &err);
        if (r < 0) {
            fail_msg("rank %d: %d %s", peer, r, err.text);
        }
        ended[peer] = r == 1;
    }
    assert_true(ended[0] && ended[1]);
}
