/* What survivors learn of a failure, how soon, and that they can go on: kill -9, SIGSTOP, abort,
 * timeout. */
#include "world.h"

#include "base/testing/test.h"
#include "base/testing/test_wait.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* So that no rank counts as silent: a death is noticed by itself, or the call times out. */
enum { NEVER_MS = 3600 * 1000 };

static atomic_bool *learnt; /* set when the survivor has noticed the death */

static int dies_while_others_reduce(struct muster_comm *comm, void *context)
{
    (void)context;
    struct muster_err err = MUSTER_ERR_INIT;
    int rank = muster_comm_rank(comm), size = muster_comm_size(comm);
    float *data = calloc(100000, sizeof *data);
    for (int i = 0; rank != size - 1 || i < 50; i++) {
        int rc =
            muster_all_reduce(comm, data, data, i % 2 ? 100000 : 2, MUSTER_F32, MUSTER_SUM, &err);
        if (rc < 0) {
            enum muster_peer_state states[64];
            struct muster_comm_state state = MUSTER_COMM_STATE_INIT;
            muster_comm_query(comm, &state, states, NULL);
            WORLD_CHECK(rc == MUSTER_EPEERDEAD || rc == MUSTER_EABORTED, "%s", err.text);
            WORLD_CHECK(states[size - 1] == MUSTER_PEER_DEAD, "state %d", (int)states[size - 1]);
            WORLD_CHECK(state.completed >= 49 && state.closed == rc, "completed %llu",
                        (unsigned long long)state.completed);
            rc = muster_barrier(comm, &err);
            WORLD_CHECK(rc == MUSTER_EABORTED, "closed for good: %d", rc);
            free(data);
            return 0;
        }
    }
    (void)raise(SIGKILL);
    return 1;
}

/* The kernel kills this process, wherever it is at that time. */
static int dies_in_us(long us)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    struct itimerspec when = {.it_value = {.tv_nsec = us * 1000}};
    timer_t timer;
    return timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &when, NULL);
}

/* Blocks are read out of the other ranks' memory: each call that succeeds has received what the
 * others sent in it, even the last one before the death. */
static int dies_within_large_copies(struct muster_comm *comm, void *context)
{
    enum { BLOCK = 100000 };
    struct muster_err err = MUSTER_ERR_INIT;
    const long *us = context;
    int rank = muster_comm_rank(comm), size = muster_comm_size(comm), rc = 0;
    int32_t *in = calloc((size_t)size * BLOCK, sizeof *in);
    int32_t *out = calloc((size_t)size * BLOCK, sizeof *out);
    WORLD_CHECK(in && out, "no memory");
    WORLD_CHECK(rank < size - 1 || dies_in_us(*us) == 0, "no timer");
    for (int turn = 1; rc == 0; turn++) {
        for (int b = 0; b < size; b++) {
            in[b * BLOCK] = in[(b + 1) * BLOCK - 1] = turn * 100 + rank * 10 + b;
        }
        rc = muster_all_to_all(comm, in, out, BLOCK, MUSTER_I32, &err);
        for (int b = 0; rc == 0 && b < size; b++) {
            int32_t wanted = turn * 100 + b * 10 + rank;
            WORLD_CHECK(out[b * BLOCK] == wanted && out[(b + 1) * BLOCK - 1] == wanted,
                        "turn %d, block %d: %d, %d", turn, b, out[b * BLOCK],
                        out[(b + 1) * BLOCK - 1]);
        }
    }
    WORLD_CHECK(rc == MUSTER_EPEERDEAD || rc == MUSTER_EABORTED, "%d %s", rc, err.text);
    free(in);
    free(out);
    return 0;
}

static int stops_and_is_evicted(struct muster_comm *comm, void *context)
{
    (void)context;
    struct muster_err err = MUSTER_ERR_INIT;
    int rank = muster_comm_rank(comm);
    if (rank == 1) {
        (void)raise(SIGSTOP);
        /* On the same host this never returns. From another host it may pass the barrier that all
         * others had entered, but nothing after it. */
        (void)muster_barrier(comm, &err);
        WORLD_CHECK(muster_barrier(comm, &err) < 0, "an evicted rank goes on");
        return 0;
    }
    int rc = muster_barrier(comm, &err);
    WORLD_CHECK(rc == MUSTER_EPEERDEAD || rc == MUSTER_EABORTED, "%d %s", rc, err.text);
    return 0;
}

static enum muster_peer_state state_of(struct muster_comm *comm, int rank)
{
    enum muster_peer_state peers[64];
    struct muster_comm_state state = MUSTER_COMM_STATE_INIT;
    muster_comm_query(comm, &state, peers, NULL);
    return peers[rank];
}

static int waits_until_it_has_given_up(struct muster_comm *comm, int rank)
{
    for (int64_t end = 0; state_of(comm, rank) == MUSTER_PEER_ALIVE;) {
        WORLD_CHECK(test_turn(&end), "rank %d still looks alive", rank);
    }
    return 0;
}

/* For calls only: to connect may take as long as the machine needs. */
enum { CALL_MS = 300 };

static int receive_times_out(struct muster_comm *comm, void *context)
{
    (void)context;
    struct muster_err err = MUSTER_ERR_INIT;
    char byte;
    if (muster_comm_rank(comm) == 1) {
        return waits_until_it_has_given_up(comm, 0);
    }
    muster_comm_set_timeout(comm, CALL_MS);
    int rc = muster_recv(comm, &byte, 1, MUSTER_U8, 1, 5, NULL, &err);
    WORLD_CHECK(rc == MUSTER_ETIMEDOUT && err.rank == 1, "%d %s", rc, err.text);
    WORLD_CHECK(strstr(err.text, "rank 1"), "%s", err.text);
    return 0;
}

static int sends_itself_nothing(struct muster_comm *comm, void *context)
{
    (void)context;
    struct muster_err err = MUSTER_ERR_INIT;
    char byte;
    muster_comm_set_timeout(comm, CALL_MS);
    int rc = muster_recv(comm, &byte, 1, MUSTER_U8, 0, 5, NULL, &err);
    WORLD_CHECK(rc == MUSTER_ETIMEDOUT && strstr(err.text, "nothing came"), "%d %s", rc, err.text);
    return 0;
}

/* The rank has a child, as ranks with data loaders have: what the child inherited must not look as
 * if the parent lived. */
static int dies_before_its_child(struct muster_comm *comm, void *context)
{
    (void)context;
    struct muster_err err = MUSTER_ERR_INIT;
    if (muster_comm_rank(comm) == 1) {
        if (fork() == 0) {
            for (int64_t end = 0; !atomic_load(learnt) && test_turn(&end);) {
            }
            _exit(0);
        }
        (void)raise(SIGKILL);
    }
    int rc = muster_barrier(comm, &err);
    enum muster_peer_state state = state_of(comm, 1);
    atomic_store(learnt, true);
    WORLD_CHECK(rc == MUSTER_EPEERDEAD && state == MUSTER_PEER_DEAD, "%d %s", rc, err.text);
    return 0;
}

/* How rank 1 ends in the middle of a message that it sends or receives. */
struct blow {
    int signal;
    bool sender;
};

enum { MIDST_BYTES = 64 << 20, MIDST_MS = 20 };

/* Sends more than fits between two ranks, without a receiver: a part of it is under way. */
static int send_a_part(struct muster_comm *comm, int to, struct muster_request **ret)
{
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_call send = {.struct_size = sizeof(struct muster_call),
                               .kind = MUSTER_SEND,
                               .type = MUSTER_U8,
                               .peer = to,
                               .in = calloc(1, MIDST_BYTES),
                               .count = MIDST_BYTES};
    WORLD_CHECK(muster_start(comm, &send, ret, &err) == 0, "%s", err.text);
    int rc = muster_request_wait(*ret, MIDST_MS, &err);
    WORLD_CHECK(rc == MUSTER_ETIMEDOUT, "%d %s", rc, err.text);
    return 0;
}

static int is_struck(struct muster_comm *comm, const struct blow *blow)
{
    struct muster_request *request;
    if (blow->sender) {
        WORLD_CHECK(send_a_part(comm, 0, &request) == 0, "no part was sent");
        atomic_store(learnt, true);
    }
    for (int64_t end = 0; !atomic_load(learnt);) {
        WORLD_CHECK(test_turn(&end), "rank 0 has sent nothing");
    }
    (void)raise(blow->signal);
    return blow->signal == SIGKILL; /* a stopped rank may be continued */
}

static int ends_in_a_message(struct muster_comm *comm, void *context)
{
    const struct blow *blow = context;
    struct muster_err err = MUSTER_ERR_INIT;
    if (muster_comm_rank(comm) == 1) {
        return is_struck(comm, blow);
    }
    int rc;
    if (blow->sender) {
        for (int64_t end = 0; !atomic_load(learnt);) {
            WORLD_CHECK(test_turn(&end), "rank 1 has sent nothing");
        }
        rc = muster_recv(comm, malloc(MIDST_BYTES), MIDST_BYTES, MUSTER_U8, 1, 0, NULL, &err);
    } else {
        struct muster_request *request;
        WORLD_CHECK(send_a_part(comm, 1, &request) == 0, "no part was sent");
        atomic_store(learnt, true);
        rc = muster_request_wait(request, -1, &err);
    }
    WORLD_CHECK(rc == MUSTER_EPEERDEAD && err.rank == 1, "%d %s", rc, err.text);
    enum muster_peer_state want =
        blow->signal == SIGKILL ? MUSTER_PEER_DEAD : MUSTER_PEER_SUSPECTED;
    enum muster_peer_state state = state_of(comm, 1);
    bool killed = blow->signal == SIGSTOP && state == MUSTER_PEER_DEAD; /* killed by rank 0 */
    WORLD_CHECK(state == want || killed, "state %d", (int)state);
    return 0;
}

static int times_out(struct muster_comm *comm, void *context)
{
    (void)context;
    struct muster_err err = MUSTER_ERR_INIT;
    if (muster_comm_rank(comm) == 1) {
        return waits_until_it_has_given_up(comm, 0);
    }
    muster_comm_set_timeout(comm, CALL_MS);
    int rc = muster_barrier(comm, &err);
    WORLD_CHECK(rc == MUSTER_ETIMEDOUT && err.rank == 1, "%d %s", rc, err.text);
    WORLD_CHECK(strstr(err.text, "rank 1"), "%s", err.text);
    return 0;
}

static void *abort_soon(void *comm)
{
    struct muster_comm_state state = MUSTER_COMM_STATE_INIT;
    do {
        muster_comm_query(comm, &state, NULL, NULL);
    } while (state.started == 0);
    muster_comm_abort(comm);
    return NULL;
}

static int aborts_from_another_thread(struct muster_comm *comm, void *context)
{
    (void)context;
    struct muster_err err = MUSTER_ERR_INIT;
    pthread_t thread;
    if (muster_comm_rank(comm) == 0) {
        pthread_create(&thread, NULL, abort_soon, comm);
        int rc = muster_barrier(comm, &err);
        WORLD_CHECK(rc == MUSTER_EABORTED, "%d %s", rc, err.text);
        pthread_join(thread, NULL);
        return 0;
    }
    /* The others never enter; they see that rank 0 has closed. */
    return waits_until_it_has_given_up(comm, 0);
}

enum { GIFT = 128 * 1024 };

/* Rank 1 leaves with a message unread, and before rank 0 has asked for its gift. */
static int leaves_a_gift(struct muster_comm *comm, void *context)
{
    (void)context;
    static float gift[GIFT];
    struct muster_err err = MUSTER_ERR_INIT;
    int rank = muster_comm_rank(comm);
    gift[GIFT - 1] = rank == 1 ? 7 : 0;
    int rc = muster_send(comm, gift, rank == 1 ? GIFT : 25, MUSTER_F32, 1 - rank, 0, &err);
    rc = rc < 0 ? rc : muster_barrier(comm, &err);
    WORLD_CHECK(rc == 0, "%s", err.text);
    if (rank == 1) {
        return 0;
    }
    for (int64_t end = 0; state_of(comm, 1) == MUSTER_PEER_ALIVE;) {
        WORLD_CHECK(test_turn(&end), "rank 1 does not leave");
    }
    rc = muster_recv(comm, gift, GIFT, MUSTER_F32, 1, 0, NULL, &err);
    WORLD_CHECK(rc == 0 && gift[GIFT - 1] == 7, "%d %s", rc, err.text);
    rc = muster_recv(comm, gift, GIFT, MUSTER_F32, 1, 0, NULL, &err);
    WORLD_CHECK(rc == MUSTER_EABORTED && state_of(comm, 1) == MUSTER_PEER_CLOSED, "%s", err.text);
    return 0;
}

static int interrupted_now(void *context)
{
    return ++*(int *)context > 2;
}

static void a_call_can_be_interrupted(void **state)
{
    (void)state;
    /* In a world of two ranks, whose second rank never comes, even forming can be cancelled. */
    int asked = 0;
    struct muster_comm_options o = MUSTER_COMM_OPTIONS_INIT;
    o.size = 2;
    o.rank = 1;
    o.host = "127.0.0.1";
    o.port = 1;
    o.interrupted = interrupted_now;
    o.interrupted_context = &asked;
    struct muster_comm *comm;
    struct muster_err err = MUSTER_ERR_INIT;
    assert_int_equal(muster_comm_create(&o, &comm, &err), MUSTER_EINTERRUPTED);
}

static int count_descriptors(void)
{
    int num = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (readdir(dir)) {
        num++;
    }
    closedir(dir);
    return num;
}

static int count_mappings(void)
{
    int lines = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    for (int c; (c = fgetc(maps)) != EOF;) {
        lines += c == '\n';
    }
    (void)fclose(maps);
    return lines;
}

enum { CYCLES = 500 };

/* Members of two incarnations of one process form, abort and form again. */
static void cycles_leak_nothing(void **state)
{
    (void)state;
    struct muster_err err = MUSTER_ERR_INIT;
    int descriptors = 0, mappings = 0;
    for (int i = 0; i < CYCLES; i++) {
        struct muster_endpoint *endpoint;
        struct muster_member member;
        struct muster_comm *comm;
        assert_int_equal(muster_endpoint_open("127.0.0.1", &endpoint, &err), 0);
        muster_endpoint_member(endpoint, &member);
        assert_int_equal(
            muster_comm_form(endpoint, &member, 1, 0, (uint64_t)i, 1000, NULL, &comm, &err), 0);
        void *memory;
        assert_int_equal(muster_comm_alloc(comm, 100000, &memory, &err), 0);
        muster_comm_abort(comm);
        assert_int_equal(muster_barrier(comm, &err), MUSTER_EABORTED);
        muster_comm_free(comm);
        muster_endpoint_close(endpoint);
        if (i == 10) {
            descriptors = count_descriptors();
            mappings = count_mappings();
        }
    }
    assert_int_equal(count_descriptors(), descriptors);
    assert_in_range(count_mappings(), 1, mappings + 2);
}

struct former {
    struct muster_endpoint *endpoint;
    const struct muster_member *members;
    int index;
    int size;
    uint64_t generation;
    int result;
};

static void *form_one(void *context)
{
    struct former *f = context;
    struct muster_comm *comm;
    struct muster_err err = MUSTER_ERR_INIT;
    f->result = muster_comm_form(f->endpoint, f->members, f->size, f->index, f->generation,
                                 test_limit_ms(), NULL, &comm, &err);
    if (f->result == 0) {
        int32_t sum = 1;
        f->result = muster_all_reduce(comm, &sum, &sum, 1, MUSTER_I32, MUSTER_SUM, &err);
        f->result = f->result == 0 && sum == f->size ? 0 : -1;
        muster_comm_free(comm);
    } else {
        (void)fprintf(stderr, "form: %s\n", err.text);
    }
    return NULL;
}

/* The same endpoints form smaller and smaller worlds, without a store. */
static void survivors_form_anew(void **state)
{
    (void)state;
    enum { MOST = 6 };
    struct muster_endpoint *endpoints[MOST];
    struct muster_member members[MOST];
    struct muster_err err = MUSTER_ERR_INIT;
    for (int r = 0; r < MOST; r++) {
        assert_int_equal(muster_endpoint_open("127.0.0.1", &endpoints[r], &err), 0);
        muster_endpoint_member(endpoints[r], &members[r]);
    }
    for (int size = MOST; size >= 1; size--) {
        struct former formers[MOST];
        pthread_t threads[MOST];
        for (int r = 0; r < size; r++) {
            formers[r] =
                (struct former){endpoints[r], members, r, size, (uint64_t)(100 - size), -1};
            pthread_create(&threads[r], NULL, form_one, &formers[r]);
        }
        for (int r = 0; r < size; r++) {
            pthread_join(threads[r], NULL);
            assert_int_equal(formers[r].result, 0);
        }
    }
    for (int r = 0; r < MOST; r++) {
        muster_endpoint_close(endpoints[r]);
    }
}

static void killed_peer(void **state)
{
    for (int size = 2; size <= 4; size++) {
        struct world w = {.kind = WORLD_PROCESSES,
                          .size = size,
                          .transport = *state,
                          .heartbeat_timeout_ms = NEVER_MS,
                          .killed = WORLD_RANK(size - 1)};
        assert_int_equal(world_run(&w, dies_while_others_reduce, NULL), 0);
    }
}

static void killed_within_large_copies(void **state)
{
    for (long us = 100; us <= 51200; us *= 8) {
        struct world w = {.kind = WORLD_PROCESSES,
                          .size = us == 100 ? 2 : 3,
                          .transport = *state,
                          .heartbeat_timeout_ms = NEVER_MS,
                          .killed = WORLD_RANK(us == 100 ? 1 : 2)};
        assert_int_equal(world_run(&w, dies_within_large_copies, &us), 0);
    }
}

static void stopped_peer(void **state)
{
    struct world w = {.kind = WORLD_PROCESSES,
                      .size = 3,
                      .transport = *state,
                      .may_be_killed = WORLD_RANK(1)}; /* by the ranks of its host */
    assert_int_equal(world_run(&w, stops_and_is_evicted, NULL), 0);
}

static void a_parent_dies(void **state)
{
    struct world w = {.kind = WORLD_PROCESSES,
                      .size = 2,
                      .transport = *state,
                      .heartbeat_timeout_ms = NEVER_MS,
                      .killed = WORLD_RANK(1)};
    atomic_store(learnt, false);
    assert_int_equal(world_run(&w, dies_before_its_child, NULL), 0);
}

static void in_the_midst_of_a_message(void **state)
{
    static const struct blow blows[] = {
        {SIGKILL, true}, {SIGKILL, false}, {SIGSTOP, true}, {SIGSTOP, false}};
    for (size_t i = 0; i < sizeof blows / sizeof blows[0]; i++) {
        bool kill = blows[i].signal == SIGKILL;
        struct world w = {.kind = WORLD_PROCESSES,
                          .size = 2,
                          .transport = *state,
                          .heartbeat_timeout_ms = kill ? NEVER_MS : 0,
                          .killed = kill ? WORLD_RANK(1) : 0,
                          .may_be_killed = WORLD_RANK(1)};
        atomic_store(learnt, false);
        assert_int_equal(world_run(&w, ends_in_a_message, (void *)(uintptr_t)&blows[i]), 0);
    }
}

static void absent_peer(void **state)
{
    struct world w = {.kind = WORLD_PROCESSES, .size = 2, .transport = *state};
    assert_int_equal(world_run(&w, times_out, NULL), 0);
    assert_int_equal(world_run(&w, receive_times_out, NULL), 0);
    w.size = 1;
    assert_int_equal(world_run(&w, sends_itself_nothing, NULL), 0);
}

static void abort_from_another_thread(void **state)
{
    struct world w = {.kind = WORLD_PROCESSES, .size = 3, .transport = *state};
    assert_int_equal(world_run(&w, aborts_from_another_thread, NULL), 0);
}

/* On one host, the send of a gift of this size would wait for its receiver. */
static void gift_of_one_who_left(void **state)
{
    struct world w = {.kind = WORLD_PROCESSES, .size = 2, .transport = *state};
    if (strcmp(*state, "shm") != 0) {
        assert_int_equal(world_run(&w, leaves_a_gift, NULL), 0);
    }
}

int main(int argc, char **argv)
{
    void *transport = argc > 1 ? argv[1] : "shm";
    learnt = mmap(NULL, sizeof *learnt, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(killed_peer, transport),
        cmocka_unit_test_prestate(killed_within_large_copies, transport),
        cmocka_unit_test_prestate(stopped_peer, transport),
        cmocka_unit_test_prestate(a_parent_dies, transport),
        cmocka_unit_test_prestate(in_the_midst_of_a_message, transport),
        cmocka_unit_test_prestate(absent_peer, transport),
        cmocka_unit_test_prestate(abort_from_another_thread, transport),
        cmocka_unit_test_prestate(gift_of_one_who_left, transport),
        cmocka_unit_test(a_call_can_be_interrupted),
        cmocka_unit_test(cycles_leak_nothing),
        cmocka_unit_test(survivors_form_anew),
    };
    return cmocka_run_group_tests_name(transport, tests, NULL, NULL);
}
