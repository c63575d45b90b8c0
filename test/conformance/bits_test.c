/* Every rank gets the same bits, and they are those of one order: the elements of a host's ranks
 * one after the other, then host after host. Whatever the algorithm, the memory and the size are.
 */
#include "world.h"

#include "base/testing/test.h"
#include "perf/value.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>

enum { MAX_SIZE = 5 };

/* Sums of these values are rounded at every step, so that another order gives other bits. */
static double input(int rank, size_t i)
{
    return (double)(world_hash(3, (uint64_t)rank, i) >> 20) * 0x1p-42 + 0.25;
}

/* Returns a rank's host, as the transports of world.c place it. */
static int host_of(const char *transport, int rank)
{
    if (strcmp(transport, "mixed") == 0) {
        return rank % 2 ? rank : 0;
    }
    return strncmp(transport, "hosts", 5) == 0 ? rank % (transport[5] - '0')
           : strcmp(transport, "tcp") == 0     ? rank
                                               : 0;
}

static const char *used_transport;

static double two(enum muster_type type, enum muster_op op, double a, double b)
{
    double both = op == MUSTER_PROD ? a * b : a + b;
    return type == MUSTER_F64 ? both : (double)(float)both; /* rounding twice is the same here */
}

/* 16-bit floats are reduced in f32 in the order of ranks, whatever their hosts. */
static double fold(enum muster_type type, enum muster_op op, int size, const double *inputs)
{
    bool by_host = type == MUSTER_F32 || type == MUSTER_F64;
    double total = NAN;
    for (int host = 0; host < size; host++) {
        double part = NAN;
        for (int r = 0; r < size; r++) {
            if ((by_host ? host_of(used_transport, r) : 0) == host) {
                part = isnan(part) ? inputs[r] : two(type, op, part, inputs[r]);
            }
        }
        if (!isnan(part)) {
            total = isnan(total) ? part : two(type, op, total, part);
        }
    }
    return op == MUSTER_AVG ? two(type, MUSTER_SUM, total / size, 0) : total;
}

/* Returns what element i must be, in the type. */
static double wanted(enum muster_type type, enum muster_op op, int size, size_t i)
{
    double inputs[MAX_SIZE];
    uint64_t bytes;
    for (int r = 0; r < size; r++) {
        perf_store(type, &bytes, 0, input(r, i));
        inputs[r] = perf_load(type, &bytes, 0);
    }
    perf_store(type, &bytes, 0, fold(type, op, size, inputs));
    return perf_load(type, &bytes, 0);
}

static int check(enum muster_type type, enum muster_op op, int size, const char *what,
                 const void *out, size_t count, size_t start)
{
    for (size_t i = 0; i < count; i += 1 + i / 64) {
        double got = perf_load(type, out, i), want = wanted(type, op, size, start + i);
        WORLD_CHECK(got == want, "%s: %s of %zu %s by %d ranks, element %zu: %a, not %a", what,
                    muster_op_name(op), count, muster_type_name(type), size, i, got, want);
    }
    return 0;
}

static void fill(enum muster_type type, void *buffer, size_t count, int rank)
{
    for (size_t i = 0; i < count; i++) {
        perf_store(type, buffer, i, input(rank, i));
    }
}

/* All-reduce, blocking and started; the others must reduce in the same order. */
static int reduce_all_ways(struct muster_comm *comm, void *in, void *out, size_t count,
                           enum muster_type type, enum muster_op op)
{
    struct muster_err err = MUSTER_ERR_INIT;
    int rank = muster_comm_rank(comm), size = muster_comm_size(comm);
    size_t part = count / (size_t)size;
    struct muster_call call = {sizeof call, MUSTER_ALL_REDUCE, type, op, 0, 0, in, out, count, NULL,
                               NULL};
    struct muster_request *request;
    fill(type, in, count, rank);
    WORLD_CHECK(muster_all_reduce(comm, in, out, count, type, op, &err) == 0, "%s", err.text);
    int failed = check(type, op, size, "all_reduce", out, count, 0);
    fill(type, in, count, rank);
    WORLD_CHECK(muster_start(comm, &call, &request, &err) == 0, "%s", err.text);
    WORLD_CHECK(muster_request_wait(request, -1, &err) == 0, "%s", err.text);
    muster_request_free(request);
    failed = failed || check(type, op, size, "started", out, count, 0);
    fill(type, in, count, rank);
    WORLD_CHECK(muster_reduce(comm, in, out, count, type, op, size - 1, &err) == 0, "%s", err.text);
    failed = failed || (rank == size - 1 && check(type, op, size, "reduce", out, count, 0));
    fill(type, in, count, rank);
    char *mine = in == out ? (char *)out + (size_t)rank * part * muster_type_bytes(type) : out;
    WORLD_CHECK(muster_reduce_scatter(comm, in, mine, part, type, op, &err) == 0, "%s", err.text);
    return failed || check(type, op, size, "reduce_scatter", mine, part, (size_t)rank * part);
}

static int every_size(struct muster_comm *comm, void *in, void *out)
{
    static const size_t counts[] = {1, 3, 130, 1500, 5000, 33333, 150001};
    static const enum muster_type types[] = {MUSTER_F32, MUSTER_F64, MUSTER_BF16, MUSTER_F16};
    static const enum muster_op ops[] = {MUSTER_SUM, MUSTER_AVG, MUSTER_PROD};
    int failed = 0;
    for (size_t c = 0; c < 7; c++) {
        for (size_t t = 0; t < 4; t++) {
            for (size_t o = 0; o < 3 && !failed; o++) {
                failed = reduce_all_ways(comm, in, out, counts[c], types[t], ops[o]);
            }
        }
    }
    return failed;
}

/* For ways that depend on the alignment of buffers, and on processors. */
static bool on_one_host(void)
{
    return strcmp(used_transport, "shm") == 0;
}

/* Runs in place and not, in private memory and in that of muster_comm_alloc, and with buffers that
 * the ranks have at different offsets within a cache line. */
static int every_memory(struct muster_comm *comm, void *context)
{
    (void)context;
    enum { BYTES = 150001 * 8 + 64 };
    struct muster_err err = MUSTER_ERR_INIT;
    void *in = malloc(BYTES), *out = malloc(BYTES), *shared_in, *shared_out;
    void *moved = (char *)in + 8 * muster_comm_rank(comm);
    int failed = every_size(comm, in, out) || every_size(comm, in, in) ||
                 (on_one_host() && every_size(comm, moved, moved));
    WORLD_CHECK(muster_comm_alloc(comm, BYTES, &shared_in, &err) == 0, "%s", err.text);
    WORLD_CHECK(muster_comm_alloc(comm, BYTES, &shared_out, &err) == 0, "%s", err.text);
    failed = failed || every_size(comm, shared_in, shared_in) ||
             every_size(comm, shared_in, shared_out) ||
             every_size(comm, muster_comm_rank(comm) ? shared_in : in, out);
    free(in);
    free(out);
    return failed;
}

static void bits_are_those_of_the_order(void **state)
{
    used_transport = *state;
    for (int size = 2; size <= MAX_SIZE; size += size - 1) { /* sizes 2, 3, 5 */
        struct world w = {.kind = WORLD_PROCESSES, .size = size, .transport = *state};
        assert_int_equal(world_run(&w, every_memory, NULL), 0);
    }
}

static int share_a_processor(int rank, void *context)
{
    (void)rank, (void)context;
    cpu_set_t all, one;
    CPU_ZERO(&one);
    WORLD_CHECK(sched_getaffinity(0, sizeof all, &all) == 0, "affinity");
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++) {
        if (CPU_ISSET(i, &all)) {
            CPU_SET(i, &one);
        }
    }
    WORLD_CHECK(sched_setaffinity(0, sizeof one, &one) == 0, "affinity");
    return 0;
}

/* On one processor, two ranks of one host use other ways. */
static void bits_are_the_same_on_one_processor(void **state)
{
    used_transport = *state;
    struct world w = {
        .kind = WORLD_PROCESSES, .size = 2, .transport = *state, .enter = share_a_processor};
    assert_int_equal(world_run(&w, every_memory, NULL), 0);
}

int main(int argc, char **argv)
{
    void *transport = argc > 1 ? argv[1] : "shm";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(bits_are_those_of_the_order, transport)};
    const struct CMUnitTest on_one_host_tests[] = {
        cmocka_unit_test_prestate(bits_are_those_of_the_order, transport),
        cmocka_unit_test_prestate(bits_are_the_same_on_one_processor, transport)};
    used_transport = transport;
    return on_one_host() ? cmocka_run_group_tests_name(transport, on_one_host_tests, NULL, NULL)
                         : cmocka_run_group_tests_name(transport, tests, NULL, NULL);
}
