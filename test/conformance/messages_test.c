/* Messages with tags, and calls that are started and waited for, on every transport. */
#include "world.h"

#include "base/testing/test.h"
#include "base/testing/test_wait.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { LARGE = 300000, COMMUNICATORS = 70, MOST_RANKS = 4 };

static int order_and_tags(struct muster_comm *comm, void *context)
{
    (void)context;
    struct muster_err err = MUSTER_ERR_INIT;
    int rank = muster_comm_rank(comm), size = muster_comm_size(comm);
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    for (int32_t i = 0; i < 100; i++) {
        int32_t value = rank * 1000 + i;
        WORLD_CHECK(muster_send(comm, &value, 1, MUSTER_I32, next, i % 2, &err) == 0, "%s",
                    err.text);
    }
    /* The odd tags come first: the even ones wait, and both keep their order. */
    for (int32_t tag = 1; tag >= 0; tag--) {
        for (int32_t i = tag; i < 100; i += 2) {
            int32_t value = 0;
            struct muster_message message = MUSTER_MESSAGE_INIT;
            int rc = muster_recv(comm, &value, 1, MUSTER_I32, before, tag, &message, &err);
            WORLD_CHECK(rc == 0, "%s", err.text);
            WORLD_CHECK(value == before * 1000 + i, "tag %d: %d, not %d", tag, value,
                        before * 1000 + i);
            WORLD_CHECK(message.source == before && message.tag == tag && message.size_bytes == 4,
                        "the message says %d, %d", message.source, message.tag);
        }
    }
    return 0;
}

static int any_source(struct muster_comm *comm, void *context)
{
    (void)context;
    struct muster_err err = MUSTER_ERR_INIT;
    int rank = muster_comm_rank(comm), size = muster_comm_size(comm);
    if (rank > 0) {
        int64_t value = rank;
        WORLD_CHECK(muster_send(comm, &value, 1, MUSTER_I64, 0, rank + 7, &err) == 0, "%s",
                    err.text);
        return 0;
    }
    int64_t sum = 0;
    for (int i = 1; i < size; i++) {
        int64_t value = 0;
        struct muster_message m = MUSTER_MESSAGE_INIT;
        int rc =
            muster_recv(comm, &value, 1, MUSTER_I64, MUSTER_ANY_SOURCE, MUSTER_ANY_TAG, &m, &err);
        WORLD_CHECK(rc == 0 && m.source == value && m.tag == m.source + 7, "%s", err.text);
        sum += value;
    }
    WORLD_CHECK(sum == size * (size - 1) / 2, "sum %lld", (long long)sum);
    return 0;
}

/* Both directions at once, larger than any buffer between the ranks. */
static int large_both_ways(struct muster_comm *comm, void *context)
{
    (void)context;
    struct muster_err err = MUSTER_ERR_INIT;
    int rank = muster_comm_rank(comm), size = muster_comm_size(comm);
    int32_t *out = malloc(LARGE * sizeof *out), *in = malloc(LARGE * sizeof *in);
    for (int i = 0; i < LARGE; i++) {
        out[i] = rank + i;
    }
    struct muster_call send = {.struct_size = sizeof(struct muster_call),
                               .kind = MUSTER_SEND,
                               .type = MUSTER_I32,
                               .peer = (rank + 1) % size,
                               .tag = 3,
                               .in = out,
                               .count = LARGE};
    struct muster_call receive = {.struct_size = sizeof(struct muster_call),
                                  .kind = MUSTER_RECV,
                                  .type = MUSTER_I32,
                                  .peer = (rank + size - 1) % size,
                                  .tag = 3,
                                  .out = in,
                                  .count = LARGE};
    struct muster_request *a, *b;
    WORLD_CHECK(muster_start(comm, &send, &a, &err) == 0, "%s", err.text);
    WORLD_CHECK(muster_start(comm, &receive, &b, &err) == 0, "%s", err.text);
    WORLD_CHECK(muster_request_wait(b, -1, &err) == 0, "%s", err.text);
    WORLD_CHECK(muster_request_wait(a, -1, &err) == 0, "%s", err.text);
    muster_request_free(a);
    muster_request_free(b);
    for (int i = 0; i < LARGE; i++) {
        WORLD_CHECK(in[i] == (rank + size - 1) % size + i, "element %d", i);
    }
    free(in);
    free(out);
    return 0;
}

/* A small message is sent at once, and a small receive is posted at once, but not before large ones
 * that were started earlier, on either side. */
static int no_message_overtakes(struct muster_comm *comm, void *context)
{
    (void)context;
    enum { TURNS = 20 };
    struct muster_err err = MUSTER_ERR_INIT;
    int rank = muster_comm_rank(comm), size = muster_comm_size(comm);
    int32_t *out = calloc(LARGE, sizeof *out), *in = calloc(LARGE, sizeof *in), small = -1;
    for (int32_t turn = 0; turn < TURNS; turn++) {
        struct muster_call large_receive = {.struct_size = sizeof(struct muster_call),
                                            .kind = MUSTER_RECV,
                                            .type = MUSTER_I32,
                                            .peer = (rank + size - 1) % size,
                                            .out = in,
                                            .count = LARGE};
        struct muster_call large_send = {.struct_size = sizeof(struct muster_call),
                                         .kind = MUSTER_SEND,
                                         .type = MUSTER_I32,
                                         .peer = (rank + 1) % size,
                                         .in = out,
                                         .count = LARGE};
        struct muster_call small_receive = large_receive, small_send = large_send;
        struct muster_request *requests[4];
        small_receive.out = &small;
        small_receive.count = small_send.count = 1;
        out[0] = turn;
        out[LARGE - 1] = turn + rank;
        const struct muster_call *calls[4] = {&large_receive, &large_send, &small_receive,
                                              &small_send};
        for (int i = 0; i < 4; i++) {
            WORLD_CHECK(muster_start(comm, calls[i], &requests[i], &err) == 0, "%s", err.text);
        }
        for (int i = 0; i < 4; i++) {
            WORLD_CHECK(muster_request_wait(requests[i], -1, &err) == 0, "%d: %s", i, err.text);
            muster_request_free(requests[i]);
        }
        WORLD_CHECK(small == turn && in[LARGE - 1] == turn + (rank + size - 1) % size,
                    "turn %d: %d, %d", turn, small, in[LARGE - 1]);
    }
    free(out);
    free(in);
    return 0;
}

static int too_long_a_message(struct muster_comm *comm, void *context)
{
    (void)context;
    struct muster_err err = MUSTER_ERR_INIT;
    int rank = muster_comm_rank(comm);
    char data[100] = {0};
    if (rank == 0) {
        WORLD_CHECK(muster_send(comm, data, 100, MUSTER_U8, 1, 0, &err) == 0, "%s", err.text);
        data[0] = 'b';
        WORLD_CHECK(muster_send(comm, data, 1, MUSTER_U8, 1, 0, &err) == 0, "%s", err.text);
    } else if (rank == 1) {
        int rc = muster_recv(comm, data, 10, MUSTER_U8, 0, 0, NULL, &err);
        WORLD_CHECK(rc == MUSTER_ETOOBIG, "%d %s", rc, err.text);
        rc = muster_recv(comm, data, 10, MUSTER_U8, 0, 0, NULL, &err);
        WORLD_CHECK(rc == 0 && data[0] == 'b', "it is gone, the next one comes: %d", rc);
    }
    WORLD_CHECK(muster_barrier(comm, &err) == 0, "usable afterwards: %s", err.text);
    return 0;
}

enum { STARTED = 60 };

static int many_started_calls(struct muster_comm *comm, void *context)
{
    (void)context;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_request *requests[STARTED];
    static const size_t counts[3] = {1, 3000, 200000};
    float *buffers[STARTED];
    int size = muster_comm_size(comm);
    for (int i = 0; i < STARTED; i++) {
        size_t count = counts[i % 3];
        buffers[i] = malloc(count * sizeof(float));
        for (size_t k = 0; k < count; k++) {
            buffers[i][k] = (float)(i + muster_comm_rank(comm));
        }
        struct muster_call call = {.struct_size = sizeof(struct muster_call),
                                   .kind = MUSTER_ALL_REDUCE,
                                   .type = MUSTER_F32,
                                   .op = MUSTER_SUM,
                                   .in = buffers[i],
                                   .out = buffers[i],
                                   .count = count};
        WORLD_CHECK(muster_start(comm, &call, &requests[i], &err) == 0, "%s", err.text);
    }
    int32_t mine = muster_comm_rank(comm), all[64];
    WORLD_CHECK(muster_all_gather(comm, &mine, all, 1, MUSTER_I32, &err) == 0, "%s", err.text);
    WORLD_CHECK(all[size - 1] == size - 1, "the gather that overtook: %d", all[size - 1]);
    for (int i = STARTED - 1; i >= 0; i--) {
        WORLD_CHECK(muster_request_wait(requests[i], -1, &err) == 0, "%s", err.text);
        WORLD_CHECK(muster_request_test(requests[i], &err) == 1, "%s", err.text);
        float want = (float)(i * size + size * (size - 1) / 2);
        for (size_t k = 0; k < counts[i % 3]; k++) {
            WORLD_CHECK(buffers[i][k] == want, "call %d, element %zu", i, k);
        }
        muster_request_free(requests[i]);
        free(buffers[i]);
    }
    return 0;
}

/* Large reductions that would take many seconds, all started before the gather. They are aborted
 * when the gather has ended on all ranks. */
static pthread_barrier_t *all_gathered;

static int a_gather_overtakes(struct muster_comm *comm, void *context)
{
    (void)context;
    enum { QUEUED = 1000, COUNT = 8 << 20 };
    static struct muster_request *requests[MOST_RANKS][QUEUED];
    struct muster_err err = MUSTER_ERR_INIT;
    int rank = muster_comm_rank(comm), size = muster_comm_size(comm);
    float *in = calloc(COUNT, sizeof *in), *out = malloc(COUNT * sizeof *out);
    struct muster_call reduction = {.struct_size = sizeof(struct muster_call),
                                    .kind = MUSTER_ALL_REDUCE,
                                    .type = MUSTER_F32,
                                    .in = in,
                                    .out = out,
                                    .count = COUNT};
    for (int i = 0; i < QUEUED; i++) {
        int rc = muster_start(comm, &reduction, &requests[rank][i], &err);
        WORLD_CHECK(rc == 0, "%s", err.text);
    }
    int32_t mine = rank, all[MOST_RANKS];
    int rc = muster_all_gather(comm, &mine, all, 1, MUSTER_I32, &err);
    int last = muster_request_test(requests[rank][QUEUED - 1], &err);
    (void)pthread_barrier_wait(all_gathered);
    muster_comm_abort(comm);
    WORLD_CHECK(rc == 0 && all[0] == 0 && all[size - 1] == size - 1, "%d %s", rc, err.text);
    WORLD_CHECK(last == 0, "the last reduction had ended before the gather: %d", last);
    last = muster_request_wait(requests[rank][QUEUED - 1], -1, &err);
    WORLD_CHECK(last == MUSTER_EABORTED, "%d %s", last, err.text);
    for (int i = 0; i < QUEUED; i++) {
        muster_request_free(requests[rank][i]);
    }
    free(in);
    free(out);
    return 0;
}

/* No call waits: the progress thread alone completes the messages. */
static int left_to_the_progress_thread(struct muster_comm *comm, void *context)
{
    (void)context;
    struct muster_err err = MUSTER_ERR_INIT;
    static const size_t count = 100000;
    float *buffer = calloc(count, sizeof *buffer);
    struct muster_call call = {.struct_size = sizeof(struct muster_call),
                               .kind = MUSTER_ALL_REDUCE,
                               .type = MUSTER_F32,
                               .op = MUSTER_SUM,
                               .in = buffer,
                               .out = buffer,
                               .count = count};
    for (int i = 0; i < 20; i++) {
        struct muster_request *request;
        WORLD_CHECK(muster_start(comm, &call, &request, &err) == 0, "%s", err.text);
        int rc;
        while ((rc = muster_request_test(request, &err)) == 0) {
        }
        WORLD_CHECK(rc == 1, "%s", err.text);
        muster_request_free(request);
    }
    free(buffer);
    return 0;
}

static int split_in_two(struct muster_comm *comm, void *context)
{
    (void)context;
    struct muster_err err = MUSTER_ERR_INIT;
    int rank = muster_comm_rank(comm), size = muster_comm_size(comm);
    struct muster_comm *half;
    WORLD_CHECK(muster_comm_split(comm, rank % 2, -rank, &half, &err) == 0, "%s", err.text);
    int32_t sum = rank;
    WORLD_CHECK(muster_all_reduce(half, &sum, &sum, 1, MUSTER_I32, MUSTER_SUM, &err) == 0, "%s",
                err.text);
    int32_t want = 0;
    for (int r = rank % 2; r < size; r += 2) {
        want += r;
    }
    WORLD_CHECK(sum == want, "%d, not %d", sum, want);
    int from_top = (size - 1 - rank) / 2;
    WORLD_CHECK(muster_comm_rank(half) == from_top, "ordered by key: %d", muster_comm_rank(half));
    WORLD_CHECK(muster_barrier(comm, &err) == 0, "%s", err.text);
    muster_comm_free(half);
    return 0;
}

/* An endless timeout works like others. */
static int the_longest_timeout(struct muster_comm *comm, void *context)
{
    (void)context;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_comm *pair;
    struct muster_request *request;
    int32_t value = 0;
    int rank = muster_comm_rank(comm);
    struct muster_call receive = {.struct_size = sizeof(struct muster_call),
                                  .kind = MUSTER_RECV,
                                  .type = MUSTER_I32,
                                  .peer = 1,
                                  .out = &value,
                                  .count = 1};
    muster_comm_set_timeout(comm, INT64_MAX);
    WORLD_CHECK(muster_comm_split(comm, rank / 2, 0, &pair, &err) == 0, "%s", err.text);
    if (rank == 0) {
        WORLD_CHECK(muster_start(pair, &receive, &request, &err) == 0, "%s", err.text);
        WORLD_CHECK(muster_request_wait(request, INT64_MAX, &err) == 0, "%s", err.text);
        WORLD_CHECK(value == 5, "%d", value);
        muster_request_free(request);
    } else if (rank == 1) {
        test_let_pass(20); /* so that rank 0 looks at its clock */
        WORLD_CHECK(muster_send(pair, &(int32_t){5}, 1, MUSTER_I32, 0, 0, &err) == 0, "%s",
                    err.text);
    }
    WORLD_CHECK(muster_barrier(comm, &err) == 0, "%s", err.text);
    muster_comm_free(pair);
    return 0;
}

/* Rank 0 waits for a message in each of many communicators: the message in the first is seen. */
static int receive_in_all(struct muster_comm *comm, struct muster_comm **many)
{
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_request *requests[COMMUNICATORS];
    int32_t values[COMMUNICATORS];
    for (int i = 0; i < COMMUNICATORS; i++) {
        struct muster_call receive = {.struct_size = sizeof(struct muster_call),
                                      .kind = MUSTER_RECV,
                                      .type = MUSTER_I32,
                                      .peer = 1,
                                      .out = &values[i],
                                      .count = 1};
        WORLD_CHECK(muster_start(many[i], &receive, &requests[i], &err) == 0, "%s", err.text);
    }
    WORLD_CHECK(muster_barrier(comm, &err) == 0, "%s", err.text);
    for (int64_t end = 0; muster_request_test(requests[0], &err) == 0;) {
        WORLD_CHECK(test_turn(&end), "nobody looked for the message");
    }
    WORLD_CHECK(muster_request_test(requests[0], &err) == 1, "%s", err.text);
    WORLD_CHECK(muster_barrier(comm, &err) == 0, "%s", err.text);
    for (int i = 0; i < COMMUNICATORS; i++) {
        WORLD_CHECK(muster_request_wait(requests[i], -1, &err) == 0, "%s", err.text);
        WORLD_CHECK(values[i] == i, "%d in communicator %d", values[i], i);
        muster_request_free(requests[i]);
    }
    return 0;
}

static int send_in_all(struct muster_comm *comm, struct muster_comm **many)
{
    struct muster_err err = MUSTER_ERR_INIT;
    WORLD_CHECK(muster_barrier(comm, &err) == 0, "%s", err.text);
    for (int32_t i = 0; i < COMMUNICATORS; i++) {
        WORLD_CHECK(muster_send(many[i], &i, 1, MUSTER_I32, 0, 0, &err) == 0, "%s", err.text);
        WORLD_CHECK(i > 0 || muster_barrier(comm, &err) == 0, "%s", err.text);
    }
    return 0;
}

static int many_communicators(struct muster_comm *comm, void *context)
{
    (void)context;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_comm *many[COMMUNICATORS];
    for (int i = 0; i < COMMUNICATORS; i++) {
        WORLD_CHECK(muster_comm_split(comm, 0, 0, &many[i], &err) == 0, "%s", err.text);
    }
    int rc = muster_comm_rank(comm) == 0 ? receive_in_all(comm, many) : send_in_all(comm, many);
    for (int i = 0; i < COMMUNICATORS; i++) {
        muster_comm_free(many[i]);
    }
    return rc;
}

/* Buffers of muster_comm_alloc, at different offsets, and together with a private one. */
static int allocated_memory(struct muster_comm *comm, void *context)
{
    (void)context;
    enum { COUNT = 50000 };
    struct muster_err err = MUSTER_ERR_INIT;
    int rank = muster_comm_rank(comm), size = muster_comm_size(comm);
    void *memory;
    WORLD_CHECK(muster_comm_alloc(comm, 3 * COUNT * sizeof(double), &memory, &err) == 0, "%s",
                err.text);
    double *private = malloc(COUNT * sizeof *private);
    for (int turn = 0; turn < 6; turn++) {
        /* in place; from one half to the other; then rank 0 with private memory */
        double *in = (double *)memory + rank * 8;
        double *out = turn % 2 ? (double *)memory + COUNT + 100 : in;
        in = turn >= 4 && rank == 0 ? private : in;
        out = turn == 4 && rank == 0 ? in : out;
        for (int i = 0; i < COUNT; i++) {
            in[i] = i + rank;
        }
        int rc = muster_all_reduce(comm, in, out, COUNT, MUSTER_F64, MUSTER_SUM, &err);
        WORLD_CHECK(rc == 0, "%s", err.text);
        for (int i = 0; i < COUNT; i++) {
            double want = (double)i * size + size * (size - 1) / 2;
            WORLD_CHECK(out[i] == want, "turn %d, element %d: %g, not %g", turn, i, out[i], want);
        }
    }
    free(private);
    WORLD_CHECK(muster_comm_release(comm, memory, &err) == 0, "%s", err.text);
    return 0;
}

/* More than one piece; the length of the last is not a multiple of the number of ranks. */
enum { PARTS_COUNT = 200003 };

/* The sum of 13 parts has the same bits in every world: the parent keeps those of one rank. */
static float *bits_of_one;

static int parts_do_not_depend_on_the_world(struct muster_comm *comm, void *context)
{
    (void)context;
    enum { TOTAL = 13, COUNT = PARTS_COUNT };
    struct muster_err err = MUSTER_ERR_INIT;
    size_t rank = (size_t)muster_comm_rank(comm), size = (size_t)muster_comm_size(comm);
    size_t first = TOTAL * rank / size, num = TOTAL * (rank + 1) / size - first;
    float *parts = malloc((num + 1) * COUNT * sizeof *parts), *out = malloc(COUNT * sizeof *out);
    for (size_t i = 0; i < num * COUNT; i++) {
        parts[i] = (float)world_hash(1, first + i / COUNT, i % COUNT) * 1e-15f;
    }
    int rc = muster_all_reduce_parts(comm, parts, first, num, TOTAL, out, COUNT, MUSTER_F32,
                                     MUSTER_AVG, &err);
    WORLD_CHECK(rc == 0, "%s", err.text);
    if (size == 1) {
        memcpy(bits_of_one, out, COUNT * sizeof *out);
    }
    WORLD_CHECK(memcmp(bits_of_one, out, COUNT * sizeof *out) == 0, "other bits");
    free(parts);
    free(out);
    return 0;
}

static void run_all(const char *transport, world_fn fn, enum world_kind kind, int least, int most)
{
    for (int size = least; size <= most; size++) {
        struct world w = {.kind = kind, .size = size, .transport = transport};
        assert_int_equal(world_run(&w, fn, NULL), 0);
    }
}

#define STORY(fn, least)                                                                           \
    static void test_##fn(void **state)                                                            \
    {                                                                                              \
        run_all(*state, fn, WORLD_PROCESSES, least, 4);                                            \
        run_all(*state, fn, WORLD_THREADS, least, 3);                                              \
    }

STORY(order_and_tags, 1)
STORY(any_source, 2)
STORY(large_both_ways, 1)
STORY(no_message_overtakes, 1)
STORY(too_long_a_message, 2)
STORY(many_started_calls, 1)
static void test_a_gather_overtakes(void **state)
{
    pthread_barrierattr_t between_processes;
    pthread_barrierattr_init(&between_processes);
    pthread_barrierattr_setpshared(&between_processes, PTHREAD_PROCESS_SHARED);
    for (int size = 2; size <= MOST_RANKS; size++) {
        pthread_barrier_init(all_gathered, &between_processes, (unsigned)size);
        run_all(*state, a_gather_overtakes, WORLD_PROCESSES, size, size);
        run_all(*state, a_gather_overtakes, WORLD_THREADS, size, size < 4 ? size : 0);
    }
}

STORY(left_to_the_progress_thread, 2)
STORY(split_in_two, 2)
STORY(the_longest_timeout, 2)
STORY(allocated_memory, 1)
STORY(parts_do_not_depend_on_the_world, 1)

static void test_many_communicators(void **state)
{
    run_all(*state, many_communicators, WORLD_PROCESSES, 2, 2);
}

int main(int argc, char **argv)
{
    void *transport = argc > 1 ? argv[1] : "shm";
    bits_of_one = mmap(NULL, PARTS_COUNT * sizeof *bits_of_one, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    all_gathered =
        mmap(NULL, sizeof *all_gathered, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_order_and_tags, transport),
        cmocka_unit_test_prestate(test_any_source, transport),
        cmocka_unit_test_prestate(test_large_both_ways, transport),
        cmocka_unit_test_prestate(test_no_message_overtakes, transport),
        cmocka_unit_test_prestate(test_too_long_a_message, transport),
        cmocka_unit_test_prestate(test_many_started_calls, transport),
        cmocka_unit_test_prestate(test_a_gather_overtakes, transport),
        cmocka_unit_test_prestate(test_left_to_the_progress_thread, transport),
        cmocka_unit_test_prestate(test_split_in_two, transport),
        cmocka_unit_test_prestate(test_the_longest_timeout, transport),
        cmocka_unit_test_prestate(test_many_communicators, transport),
        cmocka_unit_test_prestate(test_allocated_memory, transport),
        cmocka_unit_test_prestate(test_parts_do_not_depend_on_the_world, transport),
    };
    return cmocka_run_group_tests_name(transport, tests, NULL, NULL);
}
