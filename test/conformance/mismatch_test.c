/* Ranks make different calls: the call of each rank fails, at once or, where a rank may leave a
 * rooted call early, soon after, and the error of one rank shows both calls. This is tested on
 * every transport, for each difference that comm.h names, and for functions that make several
 * calls. */
#include "world.h"

#include "base/testing/test.h"
#include "base/testing/test_wait.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>

enum { MOST = 100000, ALIKE = 3, LOOK_MS = 20 };

/* Delays a thread that has looked at the bytes that are still on a socket: meanwhile, the thread of
 * the lane may take them. */
static bool looks_are_slow;

ssize_t __real_recv(int fd, void *buffer, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *buffer, size_t size, int flags);

ssize_t __wrap_recv(int fd, void *buffer, size_t size, int flags)
{
    ssize_t n = __real_recv(fd, buffer, size, flags);
    if (looks_are_slow && (flags & MSG_PEEK) && n > 1) {
        int error = errno;
        test_let_pass(LOOK_MS);
        errno = error;
    }
    return n;
}

static int split_off(struct muster_comm *comm, struct muster_err *err)
{
    struct muster_comm *half;
    return muster_comm_split(comm, 0, 0, &half, err);
}

static int take_memory(struct muster_comm *comm, struct muster_err *err)
{
    void *memory;
    return muster_comm_alloc(comm, 4096, &memory, err);
}

static int take_more_memory(struct muster_comm *comm, struct muster_err *err)
{
    void *memory;
    return muster_comm_alloc(comm, 1 << 20, &memory, err);
}

/* What one side calls, and how an error must name it. */
struct side {
    enum muster_collective kind;
    size_t count;
    enum muster_type type;
    enum muster_op op;
    int root;
    const char *name;
    const size_t *counts; /* of a call whose name ends with v */
    int (*made_of_several)(struct muster_comm *comm, struct muster_err *err); /* called if set */
};

/* For two ranks and for three: 7 and 8 elements. */
static const size_t seven[] = {4, 3, 0}, other_seven[] = {3, 4, 0}, eight[] = {4, 4, 0};

static const struct difference {
    const char *what;
    struct side one, other; /* of rank 1 */
} differences[] = {
    {"all_reduce, count",
     {MUSTER_ALL_REDUCE, 7, MUSTER_F32, .name = "all_reduce of 7 f32 by sum"},
     {MUSTER_ALL_REDUCE, 8, MUSTER_F32, .name = "all_reduce of 8 f32 by sum"}},
    {"all_reduce, count, small against large",
     {MUSTER_ALL_REDUCE, 7, MUSTER_F32, .name = "all_reduce of 7 f32 by sum"},
     {MUSTER_ALL_REDUCE, MOST, MUSTER_F32, .name = "all_reduce of 100000 f32 by sum"}},
    {"all_reduce, count, large",
     {MUSTER_ALL_REDUCE, 90000, MUSTER_F32, .name = "all_reduce of 90000 f32 by sum"},
     {MUSTER_ALL_REDUCE, MOST, MUSTER_F32, .name = "all_reduce of 100000 f32 by sum"}},
    {"all_reduce, count, none against some",
     {MUSTER_ALL_REDUCE, 0, MUSTER_F32, .name = "all_reduce of 0 f32 by sum"},
     {MUSTER_ALL_REDUCE, 7, MUSTER_F32, .name = "all_reduce of 7 f32 by sum"}},
    {"all_reduce, operation",
     {MUSTER_ALL_REDUCE, 50000, MUSTER_F32, .name = "all_reduce of 50000 f32 by sum"},
     {MUSTER_ALL_REDUCE, 50000, MUSTER_F32, .op = MUSTER_MAX,
      .name = "all_reduce of 50000 f32 by max"}},
    {"all_reduce, operation, sum against average",
     {MUSTER_ALL_REDUCE, 7, MUSTER_F32, .name = "all_reduce of 7 f32 by sum"},
     {MUSTER_ALL_REDUCE, 7, MUSTER_F32, .op = MUSTER_AVG, .name = "all_reduce of 7 f32 by avg"}},
    {"all_reduce, type",
     {MUSTER_ALL_REDUCE, 7, MUSTER_F32, .name = "all_reduce of 7 f32 by sum"},
     {MUSTER_ALL_REDUCE, 7, MUSTER_I32, .name = "all_reduce of 7 i32 by sum"}},
    {"all_reduce, type, large",
     {MUSTER_ALL_REDUCE, MOST, MUSTER_F16, .name = "all_reduce of 100000 f16 by sum"},
     {MUSTER_ALL_REDUCE, MOST, MUSTER_BF16, .name = "all_reduce of 100000 bf16 by sum"}},
    {"reduce, operation",
     {MUSTER_REDUCE, 7, MUSTER_F32, .name = "reduce of 7 f32 by sum, root 0"},
     {MUSTER_REDUCE, 7, MUSTER_F32, .op = MUSTER_MIN, .name = "reduce of 7 f32 by min, root 0"}},
    {"reduce, root",
     {MUSTER_REDUCE, 7, MUSTER_F32, .name = "reduce of 7 f32 by sum, root 0"},
     {MUSTER_REDUCE, 7, MUSTER_F32, .root = 1, .name = "reduce of 7 f32 by sum, root 1"}},
    {"reduce_scatter, count",
     {MUSTER_REDUCE_SCATTER, 7, MUSTER_F32, .name = "reduce_scatter of 7 f32 by sum"},
     {MUSTER_REDUCE_SCATTER, 8, MUSTER_F32, .name = "reduce_scatter of 8 f32 by sum"}},
    {"all_gather, count",
     {MUSTER_ALL_GATHER, 7, MUSTER_F32, .name = "all_gather of 7 f32"},
     {MUSTER_ALL_GATHER, 8, MUSTER_F32, .name = "all_gather of 8 f32"}},
    {"all_gather, count, one that overtakes against one that does not",
     {MUSTER_ALL_GATHER, 7, MUSTER_F32, .name = "all_gather of 7 f32"},
     {MUSTER_ALL_GATHER, 20000, MUSTER_F32, .name = "all_gather of 20000 f32"}},
    {"all_gatherv, sum of the counts",
     {MUSTER_ALL_GATHER, 0, MUSTER_F32, .name = "all_gather of 7 f32", .counts = seven},
     {MUSTER_ALL_GATHER, 0, MUSTER_F32, .name = "all_gather of 8 f32", .counts = eight}},
    {"all_gatherv, counts of one sum",
     {MUSTER_ALL_GATHER, 0, MUSTER_F32, .name = "all_gather of 7 f32, with", .counts = seven},
     {MUSTER_ALL_GATHER, 0, MUSTER_F32, .name = "all_gather of 7 f32, with",
      .counts = other_seven}},
    {"all_gather against all_gatherv",
     {MUSTER_ALL_GATHER, 7, MUSTER_F32, .name = "all_gather of 7 f32"},
     {MUSTER_ALL_GATHER, 0, MUSTER_F32, .name = "all_gather of 7 f32, with", .counts = seven}},
    {"broadcast, root",
     {MUSTER_BROADCAST, 7, MUSTER_F32, .name = "broadcast of 7 f32, root 0"},
     {MUSTER_BROADCAST, 7, MUSTER_F32, .root = 1, .name = "broadcast of 7 f32, root 1"}},
    {"broadcast, count, large",
     {MUSTER_BROADCAST, 90000, MUSTER_F32, .name = "broadcast of 90000 f32, root 0"},
     {MUSTER_BROADCAST, MOST, MUSTER_F32, .name = "broadcast of 100000 f32, root 0"}},
    {"gather, root",
     {MUSTER_GATHER, 7, MUSTER_F32, .name = "gather of 7 f32, root 0"},
     {MUSTER_GATHER, 7, MUSTER_F32, .root = 1, .name = "gather of 7 f32, root 1"}},
    {"scatter, type",
     {MUSTER_SCATTER, 7, MUSTER_F32, .name = "scatter of 7 f32, root 0"},
     {MUSTER_SCATTER, 7, MUSTER_F64, .name = "scatter of 7 f64, root 0"}},
    {"all_to_all, count",
     {MUSTER_ALL_TO_ALL, 7, MUSTER_F32, .name = "all_to_all of 7 f32"},
     {MUSTER_ALL_TO_ALL, 8, MUSTER_F32, .name = "all_to_all of 8 f32"}},
    {"all_to_all against all_to_allv",
     {MUSTER_ALL_TO_ALL, 7, MUSTER_F32, .name = "all_to_all of 7 f32"},
     {MUSTER_ALL_TO_ALL, 0, MUSTER_F32, .name = "all_to_all of 0 f32", .counts = seven}},
    {"call",
     {MUSTER_BROADCAST, 7, MUSTER_F32, .name = "broadcast of 7 f32, root 0"},
     {MUSTER_BARRIER, .name = "barrier"}},
    {"call, one that overtakes",
     {MUSTER_ALL_GATHER, 1, MUSTER_F32, .name = "all_gather of 1 f32"},
     {MUSTER_BARRIER, .name = "barrier"}},
    {"split against barrier",
     {.name = "all_gather", .made_of_several = split_off},
     {MUSTER_BARRIER, .name = "barrier"}},
    {"alloc against barrier",
     {.name = "all_reduce", .made_of_several = take_memory},
     {MUSTER_BARRIER, .name = "barrier"}},
    {"alloc, size",
     {.name = "4096", .made_of_several = take_memory},
     {.name = "1048576", .made_of_several = take_more_memory}},
};

enum { DIFFERENCES = sizeof differences / sizeof differences[0] };

/* What each rank reported in the last world. */
static struct saying {
    int code;
    char text[MUSTER_ERR_TEXT_BYTES];
} * said;

static void say(int rank, int code, const struct muster_err *err)
{
    if (code < 0 && said[rank].code != MUSTER_EMISMATCH) {
        said[rank].code = code;
        (void)snprintf(said[rank].text, sizeof said[rank].text, "%s", err->text);
    }
}

static struct muster_call call_of(const struct side *side, float *in, float *out)
{
    return (struct muster_call){.struct_size = sizeof(struct muster_call),
                                .kind = side->kind,
                                .type = side->type,
                                .op = side->op,
                                .peer = side->root,
                                .in = in,
                                .out = side->kind == MUSTER_BROADCAST ? in : out,
                                .count = side->count,
                                .in_counts = side->counts,
                                .out_counts = side->counts};
}

static int call_alike(struct muster_comm *comm, float *in, float *out)
{
    struct muster_err err = MUSTER_ERR_INIT;
    for (int i = 0; i < ALIKE; i++) {
        int rc = muster_all_reduce(comm, in, out, 7, MUSTER_F32, MUSTER_SUM, &err);
        WORLD_CHECK(rc == 0, "%s", err.text);
    }
    return 0;
}

static bool is_rooted(const struct side *side)
{
    return side->kind == MUSTER_BROADCAST || side->kind == MUSTER_REDUCE ||
           side->kind == MUSTER_GATHER || side->kind == MUSTER_SCATTER;
}

/* A rank may have left its rooted call: then the next call that all wait for shows the
 * difference. */
static int wait_for_all(struct muster_comm *comm, const struct difference *d,
                        struct muster_err *err)
{
    return is_rooted(&d->one) || is_rooted(&d->other) ? muster_barrier(comm, err) : 0;
}

/* Each rank makes its own call, then the other's: the order differs, too. */
static int call_in_turn(struct muster_comm *comm, const struct difference *d, float *in, float *out)
{
    int rank = muster_comm_rank(comm), rc = 0;
    struct muster_err err = MUSTER_ERR_INIT;
    for (int i = 0; i < 2 && rc == 0; i++) {
        const struct side *side = (rank == 1) == (i == 0) ? &d->other : &d->one;
        struct muster_call call = call_of(side, in, out);
        rc = side->made_of_several ? side->made_of_several(comm, &err)
                                   : muster_run(comm, &call, &err);
    }
    rc = rc < 0 ? rc : wait_for_all(comm, d, &err);
    say(rank, rc, &err);
    return 0;
}

static int call_blocking(struct muster_comm *comm, void *context)
{
    static float in[MOST], out[3 * MOST];
    return call_alike(comm, in, out) || call_in_turn(comm, context, in, out);
}

static int call_in_shared_memory(struct muster_comm *comm, void *context)
{
    void *in, *out;
    struct muster_err err = MUSTER_ERR_INIT;
    int rc = muster_comm_alloc(comm, MOST * sizeof(float), &in, &err);
    rc = rc < 0 ? rc : muster_comm_alloc(comm, 3 * MOST * sizeof(float), &out, &err);
    WORLD_CHECK(rc == 0, "%s", err.text);
    return call_alike(comm, in, out) || call_in_turn(comm, context, in, out);
}

static bool overtakes(const struct side *side)
{
    return side->kind == MUSTER_ALL_GATHER && side->count < 1000 && !side->counts;
}

/* Both calls are under way when the difference shows. */
static int call_started(struct muster_comm *comm, void *context)
{
    static float in[MOST], out[2][3 * MOST];
    const struct difference *d = context;
    int rank = muster_comm_rank(comm);
    struct muster_request *requests[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) {
        struct muster_err err = MUSTER_ERR_INIT;
        struct muster_call call =
            call_of((rank == 1) == (i == 0) ? &d->other : &d->one, in, out[i]);
        say(rank, muster_start(comm, &call, &requests[i], &err), &err);
    }
    for (int i = 0; i < 2 && requests[i]; i++) {
        struct muster_err err = MUSTER_ERR_INIT;
        say(rank, muster_request_wait(requests[i], -1, &err), &err);
        muster_request_free(requests[i]);
    }
    struct muster_err err = MUSTER_ERR_INIT;
    say(rank, wait_for_all(comm, d, &err), &err);
    return 0;
}

/* How many rooted calls the ranks may make before the error, including the one that differs. */
enum { SOON = 3, AHEAD = 32, ROOTED_CALLS = 100 };

/* Which ranks have no data to wait for: each rank publishes, or only rank 0. */
struct drift {
    bool all_publish;
    int before; /* how many calls are alike */
};

static int *calls_made; /* by each rank, including the call that failed */

static int drift_apart(struct muster_comm *comm, void *context)
{
    const struct drift *drift = context;
    int rank = muster_comm_rank(comm), rc = 0, made = 0;
    struct muster_err err = MUSTER_ERR_INIT;
    for (int i = 0; i < drift->before && rc == 0; i++) {
        rc = muster_broadcast(comm, &(float){1}, 1, MUSTER_F32, i % 2, &err);
    }
    WORLD_CHECK(rc == 0, "%s", err.text);
    for (; rc == 0 && made < ROOTED_CALLS; made++) {
        int root = made == 0 || drift->all_publish ? rank : 0;
        rc = muster_broadcast(comm, &(float){1}, 1, MUSTER_F32, root, &err);
    }
    calls_made[rank] = made;
    say(rank, rc, &err);
    return 0;
}

/* Before a sum of parts, the ranks agree on what they sum. Rank 1 differs. */
static const struct parts_call {
    size_t total, count;
    enum muster_type type;
    enum muster_op op;
    const char *name;
} parts_calls[] = {
    {2, 7, MUSTER_F16, MUSTER_SUM, "2 parts of 7 f16 by sum"}, /* what rank 0 calls */
    {2, 7, MUSTER_BF16, MUSTER_SUM, "2 parts of 7 bf16 by sum"},
    {2, 7, MUSTER_F16, MUSTER_AVG, "2 parts of 7 f16 by avg"},
    {2, 8, MUSTER_F16, MUSTER_SUM, "2 parts of 8 f16 by sum"},
    {3, 7, MUSTER_F16, MUSTER_SUM, "3 parts of 7 f16 by sum"},
};

static int sum_parts_differently(struct muster_comm *comm, void *context)
{
    const struct parts_call *call = muster_comm_rank(comm) == 1 ? context : &parts_calls[0];
    static uint16_t parts[8], out[8];
    size_t rank = (size_t)muster_comm_rank(comm);
    struct muster_err err = MUSTER_ERR_INIT;
    int rc = muster_all_reduce_parts(comm, parts, rank, 1, call->total, out, call->count,
                                     call->type, call->op, &err);
    say((int)rank, rc, &err);
    return 0;
}

/* Rank 0 sends two elements to rank 1, which expects one. */
static int counts_do_not_fit(struct muster_comm *comm, void *context)
{
    (void)context;
    static const size_t in_counts[2][2] = {{0, 2}, {1, 0}}, out_counts[2][2] = {{0, 1}, {1, 0}};
    int rank = muster_comm_rank(comm);
    float in[2] = {1, 2}, out[2] = {0, 0};
    struct muster_err err = MUSTER_ERR_INIT;
    int rc = muster_all_to_allv(comm, in, in_counts[rank], out, out_counts[rank], MUSTER_F32, &err);
    WORLD_CHECK(rc == MUSTER_EMISMATCH || rc == MUSTER_EABORTED, "%d %s", rc, err.text);
    WORLD_CHECK(rc == MUSTER_EABORTED || strstr(err.text, "in_counts"), "%s", err.text);
    return 0;
}

/* Whether the text shows both calls; or that their order differs, if all meet in the same kind. */
static bool shows_both(const struct difference *d, const char *text)
{
    return (strstr(text, d->one.name) && strstr(text, d->other.name)) ||
           (strstr(text, "(call 1)") && strstr(text, "(call 2)"));
}

static void somebody_shows_both_sides(const struct difference *d, int size, const char *transport)
{
    bool shown = false, all_failed = true;
    for (int r = 0; r < size; r++) {
        shown = shown || (said[r].code == MUSTER_EMISMATCH && shows_both(d, said[r].text));
        all_failed =
            all_failed && (said[r].code == MUSTER_EMISMATCH || said[r].code == MUSTER_EABORTED);
    }
    for (int r = 0; r < size && !(shown && all_failed); r++) {
        print_error("%s over %s: rank %d of %d: %d %s\n", d->what, transport, r, size, said[r].code,
                    said[r].text);
    }
    assert_true(shown && all_failed);
}

/* The last rank sees the difference at once; a rank that is ahead gets no further than there are
 * slots. */
static void rooted_calls_that_nobody_waits_for(void **state)
{
    for (int i = 0; i < 12; i++) {
        struct drift drift = {.all_publish = i % 2, .before = i / 4};
        struct world w = {.kind = WORLD_PROCESSES, .size = 2 + i / 2 % 2, .transport = *state};
        int least = ROOTED_CALLS, most = 0;
        const struct difference d = {
            "roots", {.name = "broadcast of 1 f32, root "}, {.name = "broadcast of 1 f32, root "}};
        memset(said, 0, (size_t)w.size * sizeof *said);
        assert_int_equal(world_run(&w, drift_apart, &drift), 0);
        somebody_shows_both_sides(&d, w.size, *state);
        for (int r = 0; r < w.size; r++) {
            least = calls_made[r] < least ? calls_made[r] : least;
            most = calls_made[r] > most ? calls_made[r] : most;
        }
        assert_in_range(least, 1, SOON);
        assert_in_range(most, 1, SOON + AHEAD);
    }
}

static void differ(const struct difference *d, int size, const char *transport, world_fn fn)
{
    struct world w = {.kind = WORLD_PROCESSES, .size = size, .transport = transport};
    memset(said, 0, (size_t)size * sizeof *said);
    assert_int_equal(world_run(&w, fn, (void *)(uintptr_t)d), 0);
    somebody_shows_both_sides(d, size, transport);
}

static void blocking_calls(void **state)
{
    for (size_t i = 0; i < DIFFERENCES; i++) {
        differ(&differences[i], 2, *state, call_blocking);
        differ(&differences[i], 3, *state, call_blocking);
    }
}

static void started_calls(void **state)
{
    for (size_t i = 0; i < DIFFERENCES; i++) {
        const struct side *one = &differences[i].one, *other = &differences[i].other;
        if (!one->made_of_several && overtakes(one) == overtakes(other)) {
            differ(&differences[i], 3, *state, call_started);
        }
    }
}

/* One of the two waits for no call before it: the first calls that meet have different numbers. */
static void started_calls_of_which_one_overtakes(void **state)
{
    for (size_t i = 0; i < DIFFERENCES; i++) {
        const struct side *one = &differences[i].one, *other = &differences[i].other;
        if (one->made_of_several || overtakes(one) == overtakes(other)) {
            continue;
        }
        /* When the gathers meet, they are all that the ranks know of each other. */
        const struct side *met = overtakes(one) ? one : other;
        const struct difference d = {differences[i].what, *met, *met};
        struct world w = {.kind = WORLD_PROCESSES, .size = 3, .transport = *state};
        memset(said, 0, 3 * sizeof *said);
        assert_int_equal(world_run(&w, call_started, (void *)(uintptr_t)&differences[i]), 0);
        somebody_shows_both_sides(&d, 3, *state);
        for (int r = 0; r < 3; r++) {
            assert_null(strstr(said[r].text, "something else"));
        }
    }
}

/* The error names the call of the other rank that was read. */
static void the_other_call_moves_on_while_it_is_read(void **state)
{
    looks_are_slow = true;
    for (int i = 0; i < 5; i++) {
        started_calls_of_which_one_overtakes(state);
    }
    looks_are_slow = false;
}

static void calls_in_shared_memory(void **state)
{
    for (size_t i = 0; i < DIFFERENCES; i++) {
        if (differences[i].one.kind == MUSTER_ALL_REDUCE && !differences[i].one.made_of_several) {
            differ(&differences[i], 3, *state, call_in_shared_memory);
        }
    }
}

static void different_parts(void **state)
{
    for (size_t i = 1; i < sizeof parts_calls / sizeof parts_calls[0]; i++) {
        struct world w = {.kind = WORLD_PROCESSES, .size = 2, .transport = *state};
        const struct difference d = {
            "parts", {.name = parts_calls[0].name}, {.name = parts_calls[i].name}};
        memset(said, 0, 2 * sizeof *said);
        void *context = (void *)(uintptr_t)&parts_calls[i];
        assert_int_equal(world_run(&w, sum_parts_differently, context), 0);
        somebody_shows_both_sides(&d, 2, *state);
    }
}

static void uneven_counts(void **state)
{
    struct world w = {.kind = WORLD_PROCESSES, .size = 2, .transport = *state};
    assert_int_equal(world_run(&w, counts_do_not_fit, NULL), 0);
}

int main(int argc, char **argv)
{
    void *transport = argc > 1 ? argv[1] : "shm";
    said = mmap(NULL, 64 * sizeof *said, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    calls_made = mmap(NULL, 64 * sizeof *calls_made, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(blocking_calls, transport),
        cmocka_unit_test_prestate(started_calls, transport),
        cmocka_unit_test_prestate(rooted_calls_that_nobody_waits_for, transport),
        cmocka_unit_test_prestate(started_calls_of_which_one_overtakes, transport),
        cmocka_unit_test_prestate(the_other_call_moves_on_while_it_is_read, transport),
        cmocka_unit_test_prestate(calls_in_shared_memory, transport),
        cmocka_unit_test_prestate(different_parts, transport),
        cmocka_unit_test_prestate(uneven_counts, transport),
    };
    return cmocka_run_group_tests_name(transport, tests, NULL, NULL);
}
