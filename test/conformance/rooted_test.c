/* Broadcast, scatter, reduce and gather, which a rank may leave before another enters: every type,
 * operation and size at the limits, ranks that are delayed by chance, a root that is far ahead, and
 * a root that leaves, splits, dies or is stopped while it is ahead. */
#include "world.h"

#include "base/testing/test.h"
#include "base/testing/test_wait.h"
#include "perf/value.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum {
    SLOT = 4096,    /* the largest call that may be left early */
    SLOTS = 32,     /* how many calls one rank may be ahead */
    AHEAD = 20,     /* fewer than that */
    STARTED = 1000, /* many more than that */
    CALLS = 600,
    LOOKS = 10000,   /* looks that must see no change */
    DIES_AFTER = 50, /* how many calls */
    NEVER_MS = 3600 * 1000,
};

static uint64_t run_seed; /* CONFORMANCE_SEED, or the time */
static const char *the_transport;

static struct shared {
    atomic_bool go; /* the other ranks may continue */
} * shared;

static bool leaves_early(void)
{
    return strcmp(the_transport, "shm") == 0;
}

static void wait_for(atomic_bool *flag)
{
    for (int64_t end = 0; !atomic_load(flag) && test_turn(&end);) {
    }
}

static bool is_defined(enum muster_type type, enum muster_op op)
{
    return op < MUSTER_BAND ? type != MUSTER_BOOL || op != MUSTER_AVG : type < MUSTER_F16;
}

/* ---- one call, checked ---- */

struct one {
    enum muster_collective kind;
    enum muster_type type;
    enum muster_op op;
    int root;
    size_t count;
    uint64_t seed;
};

static double input(const struct one *o, int rank, size_t i)
{
    int value = (int)(world_hash(o->seed, (uint64_t)rank, i) % 3);
    return o->type == MUSTER_BOOL ? value != 0 : value;
}

static double wanted(const struct one *o, int rank, int size, size_t i)
{
    if (o->kind == MUSTER_BROADCAST) {
        return input(o, o->root, i);
    }
    if (o->kind == MUSTER_SCATTER) {
        return input(o, o->root, (size_t)rank * o->count + i);
    }
    if (o->kind == MUSTER_GATHER) {
        return input(o, (int)(i / o->count), i % o->count);
    }
    double value = input(o, 0, i);
    for (int r = 1; r < size; r++) {
        value = perf_reduce(o->op, value, input(o, r, i));
    }
    return perf_finish(o->type, o->op, size, value);
}

static struct muster_call call_of(const struct one *o, char *in, char *out)
{
    return (struct muster_call){.struct_size = sizeof(struct muster_call),
                                .kind = o->kind,
                                .type = o->type,
                                .op = o->op,
                                .peer = o->root,
                                .in = in,
                                .out = o->kind == MUSTER_BROADCAST ? in : out,
                                .count = o->count};
}

static void fill(const struct one *o, int rank, int size, char *in)
{
    size_t count = o->kind == MUSTER_SCATTER ? o->count * (size_t)size : o->count;
    bool mine = o->kind == MUSTER_REDUCE || o->kind == MUSTER_GATHER || rank == o->root;
    for (size_t i = 0; i < count; i++) {
        perf_store(o->type, in, i, mine ? input(o, rank, i) : 0);
    }
}

static int check(const struct one *o, int rank, int size, const char *in, const char *out)
{
    bool gathers = o->kind == MUSTER_REDUCE || o->kind == MUSTER_GATHER;
    size_t count = o->kind == MUSTER_GATHER ? o->count * (size_t)size : o->count;
    const char *got = o->kind == MUSTER_BROADCAST ? in : out;
    for (size_t i = 0; i < count && (!gathers || rank == o->root); i++) {
        double want = wanted(o, rank, size, i);
        WORLD_CHECK(perf_load(o->type, got, i) == want,
                    "rank %d of %d: kind %d of %zu %s by %s, root %d: element %zu is %g, not %g",
                    rank, size, (int)o->kind, o->count, muster_type_name(o->type),
                    muster_op_name(o->op), o->root, i, perf_load(o->type, got, i), want);
    }
    return 0;
}

static int run_one(struct muster_comm *comm, const struct one *o, char *in, char *out)
{
    int rank = muster_comm_rank(comm), size = muster_comm_size(comm);
    struct muster_err err = MUSTER_ERR_INIT;
    const struct muster_call call = call_of(o, in, out);
    fill(o, rank, size, in);
    int rc = muster_run(comm, &call, &err);
    WORLD_CHECK(rc == 0, "%d %s", rc, err.text);
    return check(o, rank, size, in, out);
}

static const enum muster_collective kinds[] = {MUSTER_BROADCAST, MUSTER_REDUCE, MUSTER_GATHER,
                                               MUSTER_SCATTER};

/* ---- every type, operation and size ---- */

static int run_type(struct muster_comm *comm, enum muster_type type, size_t count, char *in,
                    char *out)
{
    int size = muster_comm_size(comm), failed = 0;
    for (int k = 0; k < 4 && !failed; k++) {
        for (int op = MUSTER_SUM; op < MUSTER_NUM_OPS && !failed; op++) {
            const struct one o = {kinds[k],        type,  (enum muster_op)op,
                                  (k + op) % size, count, count + (size_t)op};
            bool runs = kinds[k] == MUSTER_REDUCE ? is_defined(type, o.op) : op == MUSTER_SUM;
            failed = runs && run_one(comm, &o, in, out);
        }
    }
    return failed;
}

static int run_edges(struct muster_comm *comm, void *context)
{
    (void)context;
    static const size_t edges[] = {0, 1, 48, 56, 64, SLOT / 4, SLOT / 3, SLOT / 2, SLOT, SLOT + 1};
    size_t most = (size_t)(SLOT + 16) * (size_t)muster_comm_size(comm);
    char *in = malloc(most), *out = malloc(most);
    int failed = 0;
    for (int t = MUSTER_BOOL; t < MUSTER_NUM_TYPES && !failed; t++) {
        size_t unit = muster_type_bytes((enum muster_type)t);
        for (size_t e = 0; e < sizeof edges / sizeof edges[0] && !failed; e++) {
            size_t count = (edges[e] + unit - 1) / unit;
            failed = run_type(comm, (enum muster_type)t, count, in, out);
        }
    }
    free(in);
    free(out);
    return failed;
}

static void every_type_operation_and_size(void **state)
{
    for (int size = 2; size <= 4; size++) {
        struct world w = {.kind = WORLD_PROCESSES, .size = size, .transport = *state};
        assert_int_equal(world_run(&w, run_edges, NULL), 0);
    }
    struct world w = {.kind = WORLD_THREADS, .size = 3, .transport = *state};
    assert_int_equal(world_run(&w, run_edges, NULL), 0);
}

/* ---- ranks that are delayed by chance ---- */

/* Makes runs of up to 50 calls in which a rank gives up its core before each call, and others in
 * which it does not. */
static void delay(uint64_t seed, int rank, uint64_t call)
{
    uint64_t run = world_hash(seed, 1000 + (uint64_t)rank, call / 50);
    uint64_t yields = run % 3 ? 0 : world_hash(seed, 2000 + (uint64_t)rank, call) % 20;
    for (uint64_t i = 0; i < yields; i++) {
        (void)sched_yield();
    }
}

static struct one any_one(uint64_t seed, uint64_t call, int size)
{
    static const size_t sizes[] = {0, 1, 48, 64, 100, SLOT / 2, SLOT, SLOT + 1, 20000};
    uint64_t mix = world_hash(seed, 3000, call);
    return (struct one){
        kinds[mix % 4],         MUSTER_U8, MUSTER_SUM, (int)((mix >> 8) % (uint64_t)size),
        sizes[(mix >> 16) % 9], mix};
}

enum { UNDER_WAY = 8, MOST_BYTES = 20000 * 4 };

struct started {
    struct one one;
    struct muster_request *request; /* NULL: it has ended */
    char in[MOST_BYTES], out[MOST_BYTES];
};

static int end_one(struct muster_comm *comm, struct started *s)
{
    struct muster_err err = MUSTER_ERR_INIT;
    int rc = s->request ? muster_request_wait(s->request, -1, &err) : 0;
    WORLD_CHECK(rc == 0, "%d %s", rc, err.text);
    int failed =
        s->request && check(&s->one, muster_comm_rank(comm), muster_comm_size(comm), s->in, s->out);
    muster_request_free(s->request);
    s->request = NULL;
    return failed;
}

/* Makes a blocking call, a started one, or sometimes one that all ranks wait for. */
static int make_one(struct muster_comm *comm, uint64_t seed, uint64_t i, struct started *s)
{
    struct muster_err err = MUSTER_ERR_INIT;
    int rank = muster_comm_rank(comm), size = muster_comm_size(comm);
    uint64_t way = world_hash(seed, 4000, i) % 40;
    if (end_one(comm, s)) {
        return 1;
    }
    s->one = any_one(seed, i, size);
    if (way == 0) {
        int32_t sum = 1;
        int rc = muster_all_reduce(comm, &sum, &sum, 1, MUSTER_I32, MUSTER_SUM, &err);
        WORLD_CHECK(rc == 0 && sum == size, "%d %s", rc, err.text);
        return 0;
    }
    if (way < 20) {
        return run_one(comm, &s->one, s->in, s->out);
    }
    const struct muster_call call = call_of(&s->one, s->in, s->out);
    fill(&s->one, rank, size, s->in);
    int rc = muster_start(comm, &call, &s->request, &err);
    WORLD_CHECK(rc == 0, "%d %s", rc, err.text);
    return 0;
}

static int run_delayed(struct muster_comm *comm, void *context)
{
    uint64_t seed = *(const uint64_t *)context;
    struct started *ring = calloc(UNDER_WAY, sizeof *ring);
    int failed = 0;
    for (uint64_t i = 0; i < CALLS && !failed; i++) {
        delay(seed, muster_comm_rank(comm), i);
        failed = make_one(comm, seed, i, &ring[i % UNDER_WAY]);
    }
    for (int i = 0; i < UNDER_WAY && !failed; i++) {
        failed = end_one(comm, &ring[i]);
    }
    free(ring);
    return failed;
}

static void delayed_ranks(void **state)
{
    for (int i = 0; i < 6; i++) {
        uint64_t seed = run_seed + (uint64_t)i;
        struct world w = {.kind = i % 2 ? WORLD_THREADS : WORLD_PROCESSES,
                          .size = 2 + i / 2,
                          .transport = *state};
        assert_int_equal(world_run(&w, run_delayed, &seed), 0);
    }
}

/* ---- a rank that is far ahead ---- */

static int broadcast(struct muster_comm *comm, uint64_t value, int root, struct muster_err *err)
{
    uint64_t data = muster_comm_rank(comm) == root ? value : 0;
    int rc = muster_broadcast(comm, &data, 1, MUSTER_I64, root, err);
    WORLD_CHECK(rc < 0 || data == value, "got %llu, not %llu", (unsigned long long)data,
                (unsigned long long)value);
    return rc;
}

static int start_many(struct muster_comm *comm)
{
    static uint64_t data[STARTED];
    static struct muster_request *requests[STARTED];
    struct muster_err err = MUSTER_ERR_INIT;
    for (uint64_t i = 0; i < STARTED; i++) {
        data[i] = i;
        struct one one = {MUSTER_BROADCAST, MUSTER_I64, MUSTER_SUM, 0, 1, 0};
        const struct muster_call call = call_of(&one, (char *)&data[i], NULL);
        int rc = muster_start(comm, &call, &requests[i], &err);
        WORLD_CHECK(rc == 0, "%s", err.text);
    }
    int slots = leaves_early() ? SLOTS : 0;
    for (int i = 0; i < slots; i++) {
        WORLD_CHECK(muster_request_wait(requests[i], -1, &err) == 0, "%s", err.text);
    }
    for (int i = 0; i < LOOKS; i++) {
        WORLD_CHECK(muster_request_test(requests[slots], &err) == 0, "it goes on: %s", err.text);
    }
    atomic_store(&shared->go, true);
    for (int i = 0; i < STARTED; i++) {
        WORLD_CHECK(muster_request_wait(requests[i], -1, &err) == 0, "%s", err.text);
        muster_request_free(requests[i]);
    }
    return 0;
}

static int is_far_ahead(struct muster_comm *comm, void *context)
{
    (void)context;
    struct muster_err err = MUSTER_ERR_INIT;
    if (muster_comm_rank(comm) == 0) {
        return start_many(comm);
    }
    wait_for(&shared->go);
    for (uint64_t i = 0; i < STARTED; i++) {
        WORLD_CHECK(broadcast(comm, i, 0, &err) == 0, "%s", err.text);
    }
    return 0;
}

static void a_root_that_is_far_ahead_waits(void **state)
{
    struct world w = {.kind = WORLD_PROCESSES, .size = 3, .transport = *state};
    atomic_store(&shared->go, false);
    assert_int_equal(world_run(&w, is_far_ahead, NULL), 0);
}

/* ---- a rank that ends, or makes another communicator, while it is ahead ---- */

enum ending { FREES, ABORTS, SPLITS, DIFFERS, ENDINGS };

static int ends_ahead(struct muster_comm *comm, enum ending ending)
{
    struct muster_err err = MUSTER_ERR_INIT;
    for (uint64_t i = 0; i < AHEAD; i++) {
        WORLD_CHECK(broadcast(comm, i, 0, &err) == 0, "%s", err.text);
    }
    if (ending == ABORTS) {
        muster_comm_abort(comm);
    }
    if (ending == SPLITS) {
        atomic_store(&shared->go, true);
        struct muster_comm *other;
        WORLD_CHECK(muster_comm_split(comm, 0, 0, &other, &err) == 0, "%s", err.text);
        WORLD_CHECK(broadcast(other, 5, 1, &err) == 0, "%s", err.text);
        muster_comm_free(other);
    }
    return 0; /* its end frees it */
}

static bool has_closed(struct muster_comm *comm, int rank)
{
    enum muster_peer_state peers[64];
    (void)muster_comm_query(comm, NULL, peers, NULL);
    return peers[rank] != MUSTER_PEER_ALIVE;
}

/* An error about the call of rank 0 tells more than an error that says that rank 0 is gone. */
static int call_something_else(struct muster_comm *comm)
{
    struct muster_err err = MUSTER_ERR_INIT;
    int rc = muster_barrier(comm, &err);
    WORLD_CHECK(rc == MUSTER_EMISMATCH, "%d %s", rc, err.text);
    WORLD_CHECK(strstr(err.text, "barrier (call 1) where rank 0 calls broadcast of 1 i64, root 0"),
                "%s", err.text);
    return 0;
}

static int follow_to_the_end(struct muster_comm *comm, enum ending ending)
{
    struct muster_err err = MUSTER_ERR_INIT;
    if (ending == SPLITS) {
        wait_for(&shared->go);
        return ends_ahead(comm, ending);
    }
    for (int64_t end = 0; !has_closed(comm, 0);) {
        WORLD_CHECK(test_turn(&end), "rank 0 does not end");
    }
    if (ending == DIFFERS) {
        return call_something_else(comm);
    }
    int rc = 0;
    for (uint64_t i = 0; i < AHEAD && rc == 0; i++) {
        rc = broadcast(comm, i, 0, &err);
    }
    WORLD_CHECK(rc == 0 || (ending == ABORTS && rc == MUSTER_EABORTED), "%d %s", rc, err.text);
    rc = broadcast(comm, AHEAD, 0, &err);
    WORLD_CHECK(rc == MUSTER_EABORTED, "%d %s", rc, err.text);
    return 0;
}

static int end_in_the_midst(struct muster_comm *comm, void *context)
{
    enum ending ending = *(const enum ending *)context;
    return muster_comm_rank(comm) == 0 ? ends_ahead(comm, ending) : follow_to_the_end(comm, ending);
}

static void a_root_that_ends_while_it_is_ahead(void **state)
{
    for (int i = FREES; i < ENDINGS && leaves_early(); i++) {
        enum ending ending = (enum ending)i;
        struct world w = {.kind = WORLD_PROCESSES, .size = 2, .transport = *state};
        atomic_store(&shared->go, false);
        assert_int_equal(world_run(&w, end_in_the_midst, &ending), 0);
    }
}

/* ---- a rank that dies or is stopped ---- */

struct blow {
    int signal;
    int root; /* the last rank is hit */
    enum muster_collective kind;
};

static int is_struck(struct muster_comm *comm, void *context)
{
    const struct blow *blow = context;
    struct muster_err err = MUSTER_ERR_INIT;
    int rank = muster_comm_rank(comm), size = muster_comm_size(comm), rc = 0;
    bool struck = rank == size - 1;
    uint64_t made = 0;
    char in[8] = {0}, out[64];
    struct one one = {blow->kind, MUSTER_U8, MUSTER_SUM, blow->root, 8, 0};
    const struct muster_call call = call_of(&one, in, out);
    for (; rc == 0 && (!struck || made < DIES_AFTER); made += rc == 0) {
        rc = muster_run(comm, &call, &err);
    }
    if (struck) {
        WORLD_CHECK(rc == 0, "%s", err.text);
        (void)raise(blow->signal);
        return blow->signal == SIGKILL; /* a stopped rank may be continued */
    }
    WORLD_CHECK(rc == MUSTER_EPEERDEAD || rc == MUSTER_EABORTED, "%d %s", rc, err.text);
    WORLD_CHECK(has_closed(comm, size - 1), "rank %d is thought alive", size - 1);
    WORLD_CHECK(made <= DIES_AFTER + SLOTS, "%llu calls", (unsigned long long)made);
    WORLD_CHECK(muster_barrier(comm, &err) == MUSTER_EABORTED, "closed for good");
    return 0;
}

static void roots_and_leaves_that_die_or_are_stopped(void **state)
{
    static const struct blow blows[] = {
        {SIGKILL, 0, MUSTER_BROADCAST}, {SIGKILL, 2, MUSTER_BROADCAST},
        {SIGKILL, 0, MUSTER_GATHER},    {SIGKILL, 2, MUSTER_REDUCE},
        {SIGSTOP, 0, MUSTER_BROADCAST}, {SIGSTOP, 2, MUSTER_GATHER}};
    for (size_t i = 0; i < sizeof blows / sizeof blows[0]; i++) {
        bool kill = blows[i].signal == SIGKILL;
        struct world w = {.kind = WORLD_PROCESSES,
                          .size = 3,
                          .transport = *state,
                          .heartbeat_timeout_ms = kill ? NEVER_MS : 0,
                          .killed = kill ? WORLD_RANK(2) : 0,
                          .may_be_killed = WORLD_RANK(2)};
        assert_int_equal(world_run(&w, is_struck, (void *)(uintptr_t)&blows[i]), 0);
    }
}

int main(int argc, char **argv)
{
    void *transport = argc > 1 ? argv[1] : "shm";
    const char *seed = getenv("CONFORMANCE_SEED");
    run_seed = seed ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL);
    the_transport = transport;
    print_message("CONFORMANCE_SEED=%llu\n", (unsigned long long)run_seed);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(every_type_operation_and_size, transport),
        cmocka_unit_test_prestate(delayed_ranks, transport),
        cmocka_unit_test_prestate(a_root_that_is_far_ahead_waits, transport),
        cmocka_unit_test_prestate(a_root_that_ends_while_it_is_ahead, transport),
        cmocka_unit_test_prestate(roots_and_leaves_that_die_or_are_stopped, transport),
    };
    return cmocka_run_group_tests_name(transport, tests, NULL, NULL);
}
