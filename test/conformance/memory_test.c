/* Who owns which memory: allocations are made and freed, a forked child has no communicator, fields
 * that a call does not have are ignored, and after a failure a caller knows whether its input is
 * unchanged. */
#include "world.h"

#include "base/testing/test.h"
#include "base/testing/test_wait.h"
#include "comm/state/state.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- allocations ---- */

/* Returns how much memory is in this process's shared segments. */
static size_t shared_bytes(void)
{
    size_t sum = 0;
    char path[300], target[64];
    DIR *folder = opendir("/proc/self/fd");
    for (struct dirent *e; folder && (e = readdir(folder));) {
        (void)snprintf(path, sizeof path, "/proc/self/fd/%s", e->d_name);
        ssize_t n = readlink(path, target, sizeof target - 1);
        target[n > 0 ? n : 0] = '\0';
        struct stat status;
        if (strstr(target, "memfd:muster") && stat(path, &status) == 0) {
            sum += (size_t)status.st_blocks * 512;
        }
    }
    if (folder) {
        closedir(folder);
    }
    return sum;
}

static int gives_back_what_it_releases(struct muster_comm *comm, void *context)
{
    enum { LARGE = 32 << 20, TURNS = 4, SMALL_TURNS = 1100 };
    (void)context;
    struct muster_err err = MUSTER_ERR_INIT;
    size_t before = shared_bytes();
    for (int turn = 0; turn < TURNS + SMALL_TURNS; turn++) {
        size_t bytes = turn < TURNS ? LARGE : 64;
        void *memory = NULL;
        WORLD_CHECK(muster_comm_alloc(comm, bytes, &memory, &err) == 0, "%s", err.text);
        WORLD_CHECK(memcmp(memory, &(long){0}, sizeof(long)) == 0, "turn %d: not zeroed", turn);
        memset(memory, 1, bytes);
        int r = muster_all_reduce(comm, memory, memory, bytes / 4, MUSTER_I32, MUSTER_SUM, &err);
        WORLD_CHECK(r == 0 && muster_comm_release(comm, memory, &err) == 0, "%s", err.text);
    }
    WORLD_CHECK(muster_barrier(comm, &err) == 0, "%s",
                err.text); /* the others have released theirs, too */
    size_t after = shared_bytes();
    WORLD_CHECK(after < before + LARGE, "%zu bytes before, %zu after", before, after);
    return 0;
}

static void released_memory_goes_back(void **state)
{
    struct world w = {.kind = WORLD_PROCESSES, .size = 2, .transport = *state};
    assert_int_equal(world_run(&w, gives_back_what_it_releases, NULL), 0);
}

static void *abort_after_some(void *context)
{
    struct muster_comm *comm = context;
    struct muster_comm_state state = MUSTER_COMM_STATE_INIT;
    do {
        muster_comm_query(comm, &state, NULL, NULL);
    } while (state.completed < 20);
    muster_comm_abort(comm);
    return NULL;
}

/* Allocates until a thread of rank 0 aborts; that thread looks at the memory that exists. */
static int allocates_until_an_abort(struct muster_comm *comm, void *context)
{
    (void)context;
    struct muster_err err = MUSTER_ERR_INIT;
    pthread_t thread;
    bool aborts = muster_comm_rank(comm) == 0;
    int r = aborts ? pthread_create(&thread, NULL, abort_after_some, comm) : 0;
    while (r == 0) {
        void *memory;
        r = muster_comm_alloc(comm, 10000, &memory, &err);
        if (r == 0) {
            r = muster_all_reduce(comm, memory, memory, 2500, MUSTER_I32, MUSTER_SUM, &err);
            int released = muster_comm_release(comm, memory, &err);
            r = r < 0 ? r : released;
        }
    }
    WORLD_CHECK(r == MUSTER_EABORTED, "%d %s", r, err.text);
    return aborts ? pthread_join(thread, NULL) : 0;
}

static void memory_comes_and_goes_until_an_abort(void **state)
{
    for (int turn = 0; turn < 20; turn++) {
        struct world w = {.kind = WORLD_THREADS, .size = 2, .transport = *state};
        assert_int_equal(world_run(&w, allocates_until_an_abort, NULL), 0);
    }
}

/* ---- a forked child ---- */

static int child_is_refused(struct muster_comm *comm, void *memory, struct muster_request *request)
{
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_comm_state state = MUSTER_COMM_STATE_INIT;
    enum muster_peer_state peers[64];
    float value = 1;
    void *more = NULL;
    WORLD_CHECK(shared_bytes() == 0, "a child holds %zu bytes of the segment", shared_bytes());
    muster_comm_query(comm, &state, peers, NULL);
    WORLD_CHECK(state.closed == MUSTER_EINVAL, "a child's communicator is %d", state.closed);
    int r = muster_all_reduce(comm, &value, &value, 1, MUSTER_F32, MUSTER_SUM, &err);
    WORLD_CHECK(r == MUSTER_EINVAL, "all-reduce in a child: %d", r);
    r = muster_request_test(request, &err);
    WORLD_CHECK(r == MUSTER_EINVAL, "test in a child: %d", r);
    r = muster_request_wait(request, test_limit_ms(), &err);
    WORLD_CHECK(r == MUSTER_EINVAL, "wait in a child: %d", r);
    r = muster_comm_alloc(comm, 4096, &more, &err);
    WORLD_CHECK(r == MUSTER_EINVAL, "alloc in a child: %d", r);
    r = muster_comm_release(comm, memory, &err);
    WORLD_CHECK(r == MUSTER_EINVAL, "release in a child: %d", r);
    struct muster_comm *part = NULL;
    r = muster_comm_split(comm, 0, 0, &part, &err);
    WORLD_CHECK(r == MUSTER_EINVAL && !part, "split in a child: %d", r);
    /* A child that has no descriptor left must not touch memory that it does not have, either. */
    struct rlimit none = {0, 0};
    WORLD_CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0, "no limit can be set");
    r = muster_comm_split(comm, 0, 0, &part, &err);
    WORLD_CHECK(r == MUSTER_EINVAL && !part, "split without descriptors in a child: %d", r);
    muster_comm_abort(comm);
    muster_comm_free(comm);
    return 0;
}

/* Rank 0 forks in the middle of an all-reduce that rank 1 enters afterwards. */
static int forks_in_a_call(struct muster_comm *comm, void *context)
{
    (void)context;
    struct muster_err err = MUSTER_ERR_INIT;
    int rank = muster_comm_rank(comm);
    char word = 'x';
    float data[100] = {1};
    void *memory = NULL;
    struct muster_call call = {.struct_size = sizeof(struct muster_call),
                               .kind = MUSTER_ALL_REDUCE,
                               .type = MUSTER_F32,
                               .count = 100};
    struct muster_request *request = NULL;
    call.in = call.out = data;
    WORLD_CHECK(muster_comm_alloc(comm, 4096, &memory, &err) == 0, "%s", err.text);
    if (rank == 1) {
        int r = muster_recv(comm, &word, 1, MUSTER_U8, 0, 0, NULL, &err);
        WORLD_CHECK(r == 0, "%s", err.text);
    }
    WORLD_CHECK(muster_start(comm, &call, &request, &err) == 0, "%s", err.text);
    if (rank == 0) {
        pid_t child = fork();
        if (child == 0) {
            _exit(child_is_refused(comm, memory, request));
        }
        int status = -1;
        WORLD_CHECK(waitpid(child, &status, 0) == child && status == 0, "child: %d", status);
        WORLD_CHECK(muster_send(comm, &word, 1, MUSTER_U8, 1, 0, &err) == 0, "%s", err.text);
    }
    WORLD_CHECK(muster_request_wait(request, -1, &err) == 0, "%s", err.text);
    WORLD_CHECK(data[0] == 2, "%g", (double)data[0]);
    muster_request_free(request);
    return 0;
}

static void a_forked_child_has_none(void **state)
{
    struct world w = {.kind = WORLD_PROCESSES, .size = 2, .transport = *state};
    assert_int_equal(world_run(&w, forks_in_a_call, NULL), 0);
}

/* ---- a writer that stops ---- */

/* Rank 1 stops while it writes into rank 0's memory, and meanwhile it has closed: another of its
 * threads aborted. Its state is set here, as the moment cannot be hit from outside. */
static int aborts_under_a_stopped_writer(struct muster_comm *comm, void *context)
{
    (void)context;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_comm_state state = MUSTER_COMM_STATE_INIT;
    enum muster_peer_state peers[64];
    void *memory = NULL;
    WORLD_CHECK(muster_comm_alloc(comm, 4096, &memory, &err) == 0, "%s", err.text);
    if (muster_comm_rank(comm) == 1) {
        atomic_store(&comm->control->writing, 1);
        atomic_store(&comm->control->closed, 1);
        (void)raise(SIGSTOP);
        return 0;
    }
    do {
        muster_comm_query(comm, &state, peers, NULL);
    } while (peers[1] == MUSTER_PEER_ALIVE);
    muster_comm_abort(comm);
    return 0;
}

static void an_abort_ends_under_a_stopped_writer(void **state)
{
    (void)state;
    struct world w = {
        .kind = WORLD_PROCESSES, .size = 2, .transport = "shm", .may_be_killed = WORLD_RANK(1)};
    assert_int_equal(world_run(&w, aborts_under_a_stopped_writer, NULL), 0);
}

/* ---- fields of other calls ---- */

/* Fields that a kind of call does not use may hold any value. */
static int leaves_other_fields_alone(struct muster_comm *comm, void *context)
{
    (void)context;
    static const enum muster_collective kinds[] = {MUSTER_ALL_REDUCE,     MUSTER_REDUCE,
                                                   MUSTER_REDUCE_SCATTER, MUSTER_BROADCAST,
                                                   MUSTER_SCATTER,        MUSTER_GATHER};
    const size_t *wild = (const size_t *)(uintptr_t)16;
    struct muster_err err = MUSTER_ERR_INIT;
    float in[20] = {1}, out[20];
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct muster_call call = {.struct_size = sizeof(struct muster_call),
                                   .kind = kinds[i],
                                   .type = MUSTER_F32,
                                   .in = in,
                                   .out = out,
                                   .count = 10,
                                   .tag = -7,
                                   .in_counts = wild,
                                   .out_counts = wild};
        int r = muster_run(comm, &call, &err);
        WORLD_CHECK(r == 0, "call %zu: %s", i, err.text);
    }
    return 0;
}

/* With counts the count is such a field, and a barrier uses none at all. */
static int leaves_the_count_alone(struct muster_comm *comm, void *context)
{
    (void)context;
    static const enum muster_collective kinds[] = {MUSTER_BARRIER, MUSTER_ALL_GATHER,
                                                   MUSTER_ALL_TO_ALL};
    static const size_t counts[] = {1, 1};
    struct muster_err err = MUSTER_ERR_INIT;
    float in[2] = {1, 1}, out[2];
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct muster_call call = {.struct_size = sizeof(struct muster_call),
                                   .kind = kinds[i],
                                   .type = MUSTER_F32,
                                   .op = (enum muster_op)77,
                                   .peer = 77,
                                   .in = in,
                                   .out = out,
                                   .count = SIZE_MAX / 32,
                                   .in_counts = i > 0 ? counts : NULL,
                                   .out_counts = i > 0 ? counts : NULL};
        int r = muster_run(comm, &call, &err);
        WORLD_CHECK(r == 0, "call %zu: %s", i, err.text);
    }
    return 0;
}

static void other_fields_are_ignored(void **state)
{
    struct world w = {.kind = WORLD_PROCESSES, .size = 2, .transport = *state};
    assert_int_equal(world_run(&w, leaves_other_fields_alone, NULL), 0);
    assert_int_equal(world_run(&w, leaves_the_count_alone, NULL), 0);
}

static int refuses_nonsense(struct muster_comm *comm, void *context)
{
    (void)context;
    static const size_t good[] = {1, 1}, wrapped[] = {SIZE_MAX, 2};
    struct muster_err err = MUSTER_ERR_INIT;
    char in[4] = {0}, out[4];
    int codes[] = {
        muster_all_reduce(comm, in, out, SIZE_MAX, MUSTER_BOOL, MUSTER_SUM, &err),
        muster_all_gatherv(comm, in, out, NULL, MUSTER_U8, &err),
        muster_all_gatherv(comm, in, out, wrapped, MUSTER_U8, &err),
        muster_all_to_allv(comm, in, good, out, NULL, MUSTER_U8, &err),
        muster_all_to_allv(comm, in, NULL, out, good, MUSTER_U8, &err),
        muster_all_to_allv(comm, in, wrapped, out, good, MUSTER_U8, &err),
        muster_all_reduce_parts(comm, in, 0, 1, 2, out, SIZE_MAX / 2, MUSTER_F32, MUSTER_SUM, &err),
    };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        WORLD_CHECK(codes[i] == MUSTER_EINVAL, "nonsense %zu: %d", i, codes[i]);
    }
    struct muster_call half = {.struct_size = sizeof(struct muster_call),
                               .kind = MUSTER_ALL_TO_ALL,
                               .in = in,
                               .out = out,
                               .in_counts = good};
    WORLD_CHECK(muster_run(comm, &half, &err) == MUSTER_EINVAL, "half the counts of an all-to-all");
    WORLD_CHECK(muster_barrier(comm, &err) == 0, "it stays open: %s", err.text);
    return 0;
}

static void nonsense_is_refused(void **state)
{
    struct world w = {.kind = WORLD_PROCESSES, .size = 2, .transport = *state};
    assert_int_equal(world_run(&w, refuses_nonsense, NULL), 0);
}

/* ---- inputs ---- */

enum { COUNT = 500 };

static const struct failing {
    const char *what;
    enum muster_collective kind;
    int out_at;  /* in the buffer, in elements; the input is at 0 */
    int next_at; /* where the output of a second call with the same input is; -1: no second call */
    bool untouched; /* what must be reported */
} failings[] = {
    {"in place", MUSTER_ALL_REDUCE, 0, -1, false},
    {"out of place", MUSTER_ALL_REDUCE, 2 * COUNT, -1, true},
    {"reduce-scatter in place", MUSTER_REDUCE_SCATTER, COUNT, -1, false},
    {"reduce-scatter out of place", MUSTER_REDUCE_SCATTER, 2 * COUNT, -1, true},
    {"in place, another behind it", MUSTER_ALL_REDUCE, 0, 2 * COUNT, false},
};

/* Rank 1 makes calls that rank 0 never enters, and aborts them. */
static int aborts_its_calls(struct muster_comm *comm, void *context)
{
    const struct failing *f = context;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_comm_state state = MUSTER_COMM_STATE_INIT;
    enum muster_peer_state peers[64] = {MUSTER_PEER_ALIVE};
    while (muster_comm_rank(comm) == 0 && peers[1] == MUSTER_PEER_ALIVE) {
        muster_comm_query(comm, &state, peers, NULL);
    }
    if (muster_comm_rank(comm) == 0) {
        return 0;
    }
    static float buffer[4 * COUNT];
    struct muster_call call = {.struct_size = sizeof(struct muster_call),
                               .kind = f->kind,
                               .type = MUSTER_F32,
                               .count = COUNT,
                               .in = buffer};
    struct muster_request *requests[2] = {NULL};
    call.out = buffer + f->out_at;
    WORLD_CHECK(muster_start(comm, &call, &requests[0], &err) == 0, "%s", err.text);
    call.out = buffer + f->next_at;
    int r = f->next_at < 0 ? 0 : muster_start(comm, &call, &requests[1], &err);
    WORLD_CHECK(r == 0, "%s", err.text);
    muster_comm_abort(comm);
    muster_comm_query(comm, &state, NULL, NULL);
    WORLD_CHECK(state.closed == MUSTER_EABORTED, "closed by %d", state.closed);
    WORLD_CHECK(state.input_untouched == f->untouched, "%s: untouched %d", f->what,
                state.input_untouched);
    muster_request_free(requests[0]);
    muster_request_free(requests[1]);
    return 0;
}

static void one_knows_whether_the_input_is_whole(void **state)
{
    for (size_t i = 0; i < sizeof failings / sizeof failings[0]; i++) {
        struct world w = {.kind = WORLD_PROCESSES, .size = 2, .transport = *state};
        assert_int_equal(world_run(&w, aborts_its_calls, (void *)(uintptr_t)&failings[i]), 0);
    }
}

int main(int argc, char **argv)
{
    void *transport = argc > 1 ? argv[1] : "shm";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(released_memory_goes_back, transport),
        cmocka_unit_test_prestate(a_forked_child_has_none, transport),
        cmocka_unit_test(an_abort_ends_under_a_stopped_writer),
        cmocka_unit_test_prestate(other_fields_are_ignored, transport),
        cmocka_unit_test_prestate(nonsense_is_refused, transport),
        cmocka_unit_test_prestate(one_knows_whether_the_input_is_whole, transport),
        cmocka_unit_test_prestate(memory_comes_and_goes_until_an_abort, transport),
    };
    return cmocka_run_group_tests_name(transport, tests, NULL, NULL);
}
