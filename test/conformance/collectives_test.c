/* Every collective, type and operation, on every transport and world, against a reference in
 * double. */
#include "world.h"

#include "base/testing/test.h"
#include "perf/value.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

static const enum muster_op all_ops[] = {MUSTER_SUM, MUSTER_AVG,  MUSTER_PROD, MUSTER_MIN,
                                         MUSTER_MAX, MUSTER_BAND, MUSTER_BOR,  MUSTER_BXOR};

/* Inputs are small integers, so that sums and products of nine ranks are exact in every type. */
static int value_of(uint64_t seed, int rank, size_t index)
{
    return (int)(world_hash(seed, (uint64_t)rank, index) % 3);
}

static double input_value(enum muster_type type, uint64_t seed, int rank, size_t i)
{
    int value = value_of(seed, rank, i);
    return type == MUSTER_BOOL ? value != 0 : value;
}

/* The reference value, in double, rounded to the type at the end. */
static double reduced(enum muster_type type, enum muster_op op, uint64_t seed, int size, size_t i)
{
    double value = input_value(type, seed, 0, i);
    for (int r = 1; r < size; r++) {
        value = perf_reduce(op, value, input_value(type, seed, r, i));
    }
    return perf_finish(type, op, size, value);
}

static bool is_defined(enum muster_type type, enum muster_op op)
{
    return op < MUSTER_BAND ? type != MUSTER_BOOL || op != MUSTER_AVG : type < MUSTER_F16;
}

struct buffers {
    char *in;
    char *out;
};

static void fill(struct buffers *b, enum muster_type type, uint64_t seed, int rank, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        perf_store(type, b->in, i, input_value(type, seed, rank, i));
    }
    memset(b->out, 0xa5, count * muster_type_bytes(type));
}

static int check_all_reduce(struct muster_comm *comm, struct buffers *b, enum muster_type type,
                            enum muster_op op, size_t count, bool in_place)
{
    struct muster_err err = MUSTER_ERR_INIT;
    int rank = muster_comm_rank(comm), size = muster_comm_size(comm);
    uint64_t seed = count * 31 + (uint64_t)op;
    fill(b, type, seed, rank, count);
    char *out = in_place ? b->in : b->out;
    int rc = muster_all_reduce(comm, b->in, out, count, type, op, &err);
    if (!is_defined(type, op)) {
        WORLD_CHECK(rc == MUSTER_EINVAL, "%s of %s: %d", muster_op_name(op), muster_type_name(type),
                    rc);
        return 0;
    }
    WORLD_CHECK(rc == 0, "all_reduce: %s", err.text);
    for (size_t i = 0; i < count; i++) {
        double got = perf_load(type, out, i), want = reduced(type, op, seed, size, i);
        WORLD_CHECK(got == want, "rank %d of %d: %s of %s, %zu elements, %zu: %g, not %g", rank,
                    size, muster_op_name(op), muster_type_name(type), count, i, got, want);
        WORLD_CHECK(in_place || perf_load(type, b->in, i) == input_value(type, seed, rank, i),
                    "the input was written");
    }
    return 0;
}

static int check_reduce_scatter(struct muster_comm *comm, struct buffers *b, enum muster_type type,
                                enum muster_op op, size_t count)
{
    struct muster_err err = MUSTER_ERR_INIT;
    int rank = muster_comm_rank(comm), size = muster_comm_size(comm);
    fill(b, type, 5, rank, count * (size_t)size);
    int rc = muster_reduce_scatter(comm, b->in, b->out, count, type, op, &err);
    WORLD_CHECK(rc == 0, "reduce_scatter: %s", err.text);
    for (size_t i = 0; i < count; i++) {
        double want = reduced(type, op, 5, size, (size_t)rank * count + i);
        WORLD_CHECK(perf_load(type, b->out, i) == want, "reduce_scatter by %s, element %zu",
                    muster_op_name(op), i);
    }
    return 0;
}

static int check_reduce(struct muster_comm *comm, struct buffers *b, enum muster_type type,
                        enum muster_op op, size_t count)
{
    struct muster_err err = MUSTER_ERR_INIT;
    int rank = muster_comm_rank(comm), size = muster_comm_size(comm), root = (int)op % size;
    fill(b, type, 6, rank, count);
    int rc = muster_reduce(comm, b->in, b->in, count, type, op, root, &err);
    WORLD_CHECK(rc == 0, "reduce: %s", err.text);
    for (size_t i = 0; i < count; i++) {
        double want = rank == root ? reduced(type, op, 6, size, i) : input_value(type, 6, rank, i);
        WORLD_CHECK(perf_load(type, b->in, i) == want, "reduce by %s, element %zu",
                    muster_op_name(op), i);
    }
    return 0;
}

static int check_reductions(struct muster_comm *comm, struct buffers *b, enum muster_type type,
                            size_t count)
{
    int failed = 0;
    for (size_t o = 0; o < sizeof all_ops / sizeof all_ops[0] && !failed; o++) {
        failed = check_all_reduce(comm, b, type, all_ops[o], count, o % 2 == 0);
        if (!failed && is_defined(type, all_ops[o])) {
            failed = check_reduce_scatter(comm, b, type, all_ops[o], count) ||
                     check_reduce(comm, b, type, all_ops[o], count);
        }
    }
    return failed;
}

static int check_broadcast(struct muster_comm *comm, struct buffers *b, enum muster_type type,
                           size_t count)
{
    struct muster_err err = MUSTER_ERR_INIT;
    int root = muster_comm_size(comm) / 2;
    fill(b, type, 7, muster_comm_rank(comm), count);
    int rc = muster_broadcast(comm, b->in, count, type, root, &err);
    WORLD_CHECK(rc == 0, "broadcast: %s", err.text);
    for (size_t i = 0; i < count; i++) {
        WORLD_CHECK(perf_load(type, b->in, i) == input_value(type, 7, root, i), "broadcast, %zu",
                    i);
    }
    return 0;
}

static int check_gathers(struct muster_comm *comm, struct buffers *b, enum muster_type type,
                         size_t count)
{
    struct muster_err err = MUSTER_ERR_INIT;
    int rank = muster_comm_rank(comm), size = muster_comm_size(comm);
    for (int all = 0; all < 2; all++) {
        fill(b, type, 8, rank, count * (size_t)size);
        int rc = all ? muster_all_gather(comm, b->in, b->out, count, type, &err)
                     : muster_gather(comm, b->in, b->out, count, type, 0, &err);
        WORLD_CHECK(rc == 0, "gather: %s", err.text);
        for (size_t i = 0; i < count * (size_t)size && (all || rank == 0); i++) {
            double want = input_value(type, 8, (int)(i / count), i % count);
            WORLD_CHECK(perf_load(type, b->out, i) == want, "gather (all: %d), element %zu", all,
                        i);
        }
    }
    return 0;
}

static int check_uneven(struct muster_comm *comm, struct buffers *b, enum muster_type type,
                        size_t count)
{
    struct muster_err err = MUSTER_ERR_INIT;
    int rank = muster_comm_rank(comm), size = muster_comm_size(comm);
    size_t counts[64], start = 0;
    for (int r = 0; r < size; r++) {
        counts[r] = r % 3 == 1 ? 0 : count / (size_t)(r + 1);
    }
    fill(b, type, 9, rank, count * (size_t)size);
    int rc = muster_all_gatherv(comm, b->in, b->out, counts, type, &err);
    WORLD_CHECK(rc == 0, "all_gatherv: %s", err.text);
    for (int r = 0; r < size; r++) {
        for (size_t i = 0; i < counts[r]; i++) {
            WORLD_CHECK(perf_load(type, b->out, start + i) == input_value(type, 9, r, i),
                        "all_gatherv, rank %d, element %zu", r, i);
        }
        start += counts[r];
    }
    return 0;
}

static int check_scatter(struct muster_comm *comm, struct buffers *b, enum muster_type type,
                         size_t count)
{
    struct muster_err err = MUSTER_ERR_INIT;
    int rank = muster_comm_rank(comm), size = muster_comm_size(comm);
    fill(b, type, 10, rank, count * (size_t)size);
    int rc = muster_scatter(comm, b->in, b->out, count, type, size - 1, &err);
    WORLD_CHECK(rc == 0, "scatter: %s", err.text);
    for (size_t i = 0; i < count; i++) {
        WORLD_CHECK(perf_load(type, b->out, i) ==
                        input_value(type, 10, size - 1, (size_t)rank * count + i),
                    "scatter, element %zu", i);
    }
    return 0;
}

/* Rank s sends (s + 2 * d) % 5 * count / 4 elements to rank d. */
static size_t exchanged(int from, int to, size_t count)
{
    return (size_t)((from + 2 * to) % 5) * count / 4;
}

static int check_all_to_all(struct muster_comm *comm, struct buffers *b, enum muster_type type,
                            size_t count)
{
    struct muster_err err = MUSTER_ERR_INIT;
    int rank = muster_comm_rank(comm), size = muster_comm_size(comm);
    size_t in[64], out[64], start = 0;
    for (int r = 0; r < size; r++) {
        in[r] = exchanged(rank, r, count);
        out[r] = exchanged(r, rank, count);
    }
    fill(b, type, 11, rank, count * (size_t)size);
    int rc = muster_all_to_allv(comm, b->in, in, b->out, out, type, &err);
    WORLD_CHECK(rc == 0, "all_to_allv: %s", err.text);
    for (int r = 0; r < size; r++) {
        size_t theirs = 0;
        for (int before = 0; before < rank; before++) {
            theirs += exchanged(r, before, count);
        }
        for (size_t i = 0; i < out[r]; i++) {
            WORLD_CHECK(perf_load(type, b->out, start + i) == input_value(type, 11, r, theirs + i),
                        "all_to_allv from %d, element %zu", r, i);
        }
        start += out[r];
    }
    fill(b, type, 12, rank, count * (size_t)size);
    rc = muster_all_to_all(comm, b->in, b->out, count, type, &err);
    WORLD_CHECK(rc == 0, "all_to_all: %s", err.text);
    for (size_t i = 0; i < count * (size_t)size; i++) {
        double want = input_value(type, 12, (int)(i / count), (size_t)rank * count + i % count);
        WORLD_CHECK(perf_load(type, b->out, i) == want, "all_to_all, element %zu", i);
    }
    WORLD_CHECK(muster_barrier(comm, &err) == 0, "barrier: %s", err.text);
    return 0;
}

typedef int (*check_fn)(struct muster_comm *, struct buffers *, enum muster_type, size_t);

static const check_fn checks[] = {check_reductions, check_broadcast, check_gathers,
                                  check_uneven,     check_scatter,   check_all_to_all};

struct plan {
    const size_t *counts;
    size_t num_counts;
    size_t random_below; /* one more count, which differs in each run */
    bool all_types;
};

static uint64_t run_seed; /* CONFORMANCE_SEED, or the time */

static int run_checks(struct muster_comm *comm, struct buffers *b, enum muster_type type,
                      size_t count)
{
    int failed = 0;
    for (size_t k = 0; k < sizeof checks / sizeof checks[0] && !failed; k++) {
        failed = checks[k](comm, b, type, count);
    }
    return failed;
}

static int run_plan(struct muster_comm *comm, void *context)
{
    const struct plan *plan = context;
    int failed = 0;
    size_t most = plan->counts[plan->num_counts - 1];
    most = most > plan->random_below ? most : plan->random_below;
    size_t most_bytes = most * 2 * (size_t)muster_comm_size(comm) * 8 + 64;
    struct buffers b = {malloc(most_bytes), malloc(most_bytes)};
    for (int t = MUSTER_BOOL; t < MUSTER_NUM_TYPES && !failed; t++) {
        enum muster_type type = (enum muster_type)t;
        bool wanted = plan->all_types || type == MUSTER_F32;
        for (size_t c = 0; c < plan->num_counts && wanted && !failed; c++) {
            failed = run_checks(comm, &b, type, plan->counts[c]);
        }
        size_t random = world_hash(run_seed, (uint64_t)t, most) % plan->random_below;
        failed = failed || (wanted && run_checks(comm, &b, type, random));
    }
    free(b.in);
    free(b.out);
    return failed;
}

/* The thread sanitizer sees only what threads share, so a few worlds of processes are enough for
 * it. */
#if defined(__SANITIZE_THREAD__)
enum { PROCESSES_MAX = 3, LARGE_MAX = 3 };
#else
enum { PROCESSES_MAX = 9, LARGE_MAX = 5 };
#endif

static const size_t small_counts[] = {0, 1, 7, 300};
static const size_t large_counts[] = {4097, 40000, 150001};

static void every_type_in_every_world(void **state)
{
    const char *transport = *state;
    struct plan plan = {small_counts, 4, 3000, true};
    for (int size = 1; size <= PROCESSES_MAX; size++) {
        struct world w = {.kind = WORLD_PROCESSES, .size = size, .transport = transport};
        assert_int_equal(world_run(&w, run_plan, &plan), 0);
    }
}

static void large_vectors(void **state)
{
    const char *transport = *state;
    struct plan plan = {large_counts, 3, 150000, false};
    for (int size = 1; size <= LARGE_MAX; size++) {
        struct world w = {.kind = WORLD_PROCESSES, .size = size, .transport = transport};
        assert_int_equal(world_run(&w, run_plan, &plan), 0);
    }
}

static void ranks_as_threads(void **state)
{
    const char *transport = *state;
    struct plan small = {small_counts, 4, 300, true}, large = {large_counts, 2, 4097, false};
    struct plan one = {small_counts + 2, 1, 300, true};
    for (int size = 1; size <= 9; size++) {
        struct world w = {.kind = WORLD_THREADS, .size = size, .transport = transport};
        assert_int_equal(world_run(&w, run_plan, size <= 3 ? &small : &one), 0);
        if (size == 2 || size == 3) {
            assert_int_equal(world_run(&w, run_plan, &large), 0);
        }
    }
}

int main(int argc, char **argv)
{
    void *transport = argc > 1 ? argv[1] : "shm";
    const char *seed = getenv("CONFORMANCE_SEED");
    run_seed = seed ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL);
    print_message("CONFORMANCE_SEED=%llu\n", (unsigned long long)run_seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(every_type_in_every_world, transport),
        cmocka_unit_test_prestate(large_vectors, transport),
        cmocka_unit_test_prestate(ranks_as_threads, transport),
    };
    return cmocka_run_group_tests_name(transport, tests, NULL, NULL);
}
