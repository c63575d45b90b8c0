/* Communicators are formed and freed in the same processes: they leave nothing behind, many exist
 * at once, any list of members can form one, and a closed communicator stays closed. */
#include "base/testing/test.h"
#include "base/testing/test_wait.h"

#include "conformance/world.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 4, CYCLES = 500, WARM_CYCLES = 30, LOOKS = 20, MANY = 24, SPARE_KIB = 2048 };

static struct shared {
    pthread_barrier_t barrier;
    struct muster_member members[RANKS];
} * shared;

/* What a process may leak. */
struct inventory {
    int descriptors;
    int threads;
    int shared_files;
    long mappings;
    long resident_kib;
};

/* Counts all entries, or only files whose names begin with the prefix: folders belong to other
 * tests. */
static int count_entries(const char *path, const char *prefix)
{
    int num = 0;
    DIR *dir = opendir(path);
    for (const struct dirent *e; dir && (e = readdir(dir));) {
        num += !prefix || (e->d_type == DT_REG && strncmp(e->d_name, prefix, strlen(prefix)) == 0);
    }
    if (dir) {
        closedir(dir);
    }
    return num;
}

static struct inventory take_inventory(void)
{
    struct inventory i = {.descriptors = count_entries("/proc/self/fd", NULL),
                          .threads = count_entries("/proc/self/task", NULL),
                          .shared_files = count_entries("/dev/shm", "muster")};
    FILE *maps = fopen("/proc/self/maps", "re");
    for (int c; maps && (c = fgetc(maps)) != EOF;) {
        i.mappings += c == '\n';
    }
    FILE *memory = fopen("/proc/self/statm", "re");
    long pages = 0;
    if (memory && fscanf(memory, "%*s %ld", &pages) == 1) {
        i.resident_kib = pages * (sysconf(_SC_PAGESIZE) / 1024);
    }
    (void)fclose(maps);
    (void)fclose(memory);
    return i;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

static long least_long(long a, long b)
{
    return a < b ? a : b;
}

/* Keeps the smallest value of each that was seen, because something that exists only for a moment
 * is not a leak. Examples are a thread that was joined, until the kernel has removed it, and the
 * connection of a peer that watched this rank while it formed, if the end of the connection has not
 * arrived: the next forming closes it. */
static void look_again(struct inventory *least_seen)
{
    struct inventory now = take_inventory();
    if (least_seen->descriptors == 0) {
        *least_seen = now;
    }
    least_seen->descriptors = least(least_seen->descriptors, now.descriptors);
    least_seen->threads = least(least_seen->threads, now.threads);
    least_seen->shared_files = least(least_seen->shared_files, now.shared_files);
    least_seen->mappings = least_long(least_seen->mappings, now.mappings);
    least_seen->resident_kib = least_long(least_seen->resident_kib, now.resident_kib);
}

static bool leaks(const struct inventory *after, const struct inventory *before)
{
    return after->descriptors > before->descriptors || after->threads > before->threads ||
           after->shared_files > before->shared_files || after->mappings > before->mappings + 2 ||
           after->resident_kib > before->resident_kib + SPARE_KIB;
}

static int compare_inventories(const struct inventory *before, struct inventory *after)
{
    for (int64_t end = 0; leaks(after, before) && test_turn(&end);) {
        look_again(after);
    }
    WORLD_CHECK(!leaks(after, before),
                "before and after: descriptors %d %d, threads %d %d, files %d %d, mappings %ld "
                "%ld, KiB %ld %ld",
                before->descriptors, after->descriptors, before->threads, after->threads,
                before->shared_files, after->shared_files, before->mappings, after->mappings,
                before->resident_kib, after->resident_kib);
    return 0;
}

/* Runs fn as RANKS processes, each with an endpoint that all know. */
static int run_ranks(int (*fn)(int rank, struct muster_endpoint *endpoint), const char *transport)
{
    int failed = 0;
    (void)fflush(NULL);
    for (int r = 0; r < RANKS; r++) {
        if (fork() == 0) {
            struct muster_endpoint *endpoint;
            test_alarm();
            (void)setenv("MUSTER_TRANSPORT", transport, 1);
            if (muster_endpoint_open("127.0.0.1", &endpoint, NULL) < 0) {
                _exit(2);
            }
            muster_endpoint_member(endpoint, &shared->members[r]);
            (void)pthread_barrier_wait(&shared->barrier);
            int rc = fn(r, endpoint);
            muster_endpoint_close(endpoint);
            _exit(rc);
        }
    }
    for (int status; wait(&status) > 0;) {
        failed += status != 0;
    }
    return failed;
}

static int sum_once(struct muster_comm *comm)
{
    struct muster_err err = MUSTER_ERR_INIT;
    int32_t sum = 1;
    int rc = muster_all_reduce(comm, &sum, &sum, 1, MUSTER_I32, MUSTER_SUM, &err);
    WORLD_CHECK(rc == 0 && sum == muster_comm_size(comm), "%d %s", rc, err.text);
    return 0;
}

static int form_and_abort(int rank, struct muster_endpoint *endpoint)
{
    struct inventory before = {0}, after = {0};
    for (int i = 0; i < CYCLES; i++) {
        struct muster_comm *comm;
        struct muster_err err = MUSTER_ERR_INIT;
        void *memory;
        int rc = muster_comm_form(endpoint, shared->members, RANKS, rank, (uint64_t)i,
                                  test_limit_ms(), NULL, &comm, &err);
        WORLD_CHECK(rc == 0, "cycle %d: %s", i, err.text);
        WORLD_CHECK(muster_comm_alloc(comm, 10000, &memory, &err) == 0, "%s", err.text);
        if (sum_once(comm) != 0) {
            return 1;
        }
        (void)pthread_barrier_wait(&shared->barrier); /* or one would abort the others' sum */
        muster_comm_abort(comm);
        WORLD_CHECK(muster_barrier(comm, &err) == MUSTER_EABORTED, "%s", err.text);
        muster_comm_free(comm);
        if (i >= WARM_CYCLES && i < WARM_CYCLES + LOOKS) {
            look_again(&before);
        } else if (i >= CYCLES - LOOKS) {
            look_again(&after);
        }
    }
    if (compare_inventories(&before, &after) != 0) {
        return 1;
    }
    WORLD_CHECK(waitpid(-1, NULL, WNOHANG | __WALL) == -1, "a process is left");
    return 0;
}

static void cycles_leak_nothing(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(form_and_abort, "auto"), 0);
    assert_int_equal(run_ranks(form_and_abort, "tcp"), 0);
}

static int use_many(int rank, struct muster_endpoint *endpoint)
{
    struct muster_comm *comms[MANY];
    struct muster_request *requests[MANY];
    static float in[MANY][5000], out[MANY][5000];
    struct muster_err err = MUSTER_ERR_INIT;
    for (int i = 0; i < MANY; i++) {
        int rc = muster_comm_form(endpoint, shared->members, RANKS, rank, (uint64_t)i,
                                  test_limit_ms(), NULL, &comms[i], &err);
        WORLD_CHECK(rc == 0, "%s", err.text);
    }
    for (int i = 0; i < MANY; i++) {
        in[i][4999] = (float)i;
        struct muster_call call = {.struct_size = sizeof(struct muster_call),
                                   .kind = MUSTER_ALL_REDUCE,
                                   .type = MUSTER_F32,
                                   .in = in[i],
                                   .out = out[i],
                                   .count = 5000};
        WORLD_CHECK(muster_start(comms[i], &call, &requests[i], &err) == 0, "%s", err.text);
    }
    for (int i = MANY - 1; i >= 0; i--) {
        int rc = muster_request_wait(requests[i], -1, &err);
        WORLD_CHECK(rc == 0 && out[i][4999] == (float)(RANKS * i), "%d %s", rc, err.text);
        muster_request_free(requests[i]);
    }
    for (int i = 0; i < MANY; i++) {
        muster_comm_free(comms[i]);
    }
    return 0;
}

static void many_at_once(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(use_many, "auto"), 0);
    assert_int_equal(run_ranks(use_many, "tcp"), 0);
}

/* Forms a communicator of each list: all ranks, some of them, all in another order, one. */
static int form_lists(int rank, struct muster_endpoint *endpoint)
{
    static const int lists[][RANKS + 1] = {{0, 1, 2, 3, -1}, {1, 3, -1}, {0, 2, -1},
                                           {3, 2, 1, 0, -1}, {2, -1},    {0, 1, 2, 3, -1}};
    for (size_t l = 0; l < sizeof lists / sizeof lists[0]; l++) {
        struct muster_member members[RANKS];
        struct muster_err err = MUSTER_ERR_INIT;
        int size = 0, index = -1;
        for (; lists[l][size] >= 0; size++) {
            members[size] = shared->members[lists[l][size]];
            index = lists[l][size] == rank ? size : index;
        }
        struct muster_comm *comm;
        if (index >= 0) {
            int rc = muster_comm_form(endpoint, members, size, index, 100 + l, test_limit_ms(),
                                      NULL, &comm, &err);
            WORLD_CHECK(rc == 0 && muster_comm_rank(comm) == index, "list %zu: %s", l, err.text);
            rc = sum_once(comm);
            muster_comm_free(comm);
            if (rc != 0) {
                return rc;
            }
        }
    }
    return 0;
}

static void any_list_of_members(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(form_lists, "auto"), 0);
    assert_int_equal(run_ranks(form_lists, "tcp"), 0);
}

/* Rank 3 has another incarnation than the list says. */
static int meet_a_stranger(int rank, struct muster_endpoint *endpoint)
{
    struct muster_endpoint *again = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_comm *comm;
    if (rank == RANKS - 1) {
        muster_endpoint_close(endpoint);
        WORLD_CHECK(muster_endpoint_open("127.0.0.1", &again, &err) == 0, "%s", err.text);
    }
    (void)pthread_barrier_wait(&shared->barrier);
    int rc = muster_comm_form(again ? again : endpoint, shared->members, RANKS, rank, 7, 300, NULL,
                              &comm, &err);
    (void)pthread_barrier_wait(&shared->barrier);
    if (again) {
        muster_endpoint_close(again);
        _exit(rc != MUSTER_EINVAL);
    }
    WORLD_CHECK(rc == MUSTER_ETIMEDOUT || rc == MUSTER_EUNAVAIL,
                "a stranger was taken for a member");
    WORLD_CHECK(rank != 0 || err.rank == RANKS - 1, "rank %d is missing: %s", err.rank, err.text);
    return 0;
}

static void a_member_is_in_the_list_once(void **state)
{
    (void)state;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_endpoint *endpoint;
    struct muster_member members[2];
    struct muster_comm *comm;
    assert_int_equal(muster_endpoint_open("127.0.0.1", &endpoint, &err), 0);
    muster_endpoint_member(endpoint, &members[0]);
    members[1] = members[0];
    assert_int_equal(muster_comm_form(endpoint, members, 2, 0, 1, 1000, NULL, &comm, &err),
                     MUSTER_EINVAL);
    muster_endpoint_close(endpoint);
}

static void a_member_is_an_incarnation(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(meet_a_stranger, "auto"), 0);
}

/* ---- closing ---- */

struct aborter {
    struct muster_comm *comm;
    uint64_t after; /* after this many sums */
    uint64_t at_abort;
};

static void *abort_later(void *context)
{
    struct aborter *a = context;
    struct muster_comm_state state = MUSTER_COMM_STATE_INIT;
    do {
        (void)sched_yield();
        muster_comm_query(a->comm, &state, NULL, NULL);
    } while (state.completed < a->after);
    muster_comm_abort(a->comm);
    muster_comm_query(a->comm, &state, NULL, NULL);
    a->at_abort = state.completed;
    return NULL;
}

static int abort_in_the_middle(int rank, struct muster_endpoint *endpoint)
{
    for (int i = 0; i < 20; i++) {
        struct aborter a = {.after = (uint64_t)i * 3};
        struct muster_err err = MUSTER_ERR_INIT;
        static float data[30000];
        int rc = muster_comm_form(endpoint, shared->members, RANKS, rank, (uint64_t)i,
                                  test_limit_ms(), NULL, &a.comm, &err);
        WORLD_CHECK(rc == 0, "%s", err.text);
        (void)pthread_barrier_wait(&shared->barrier);
        pthread_t thread;
        bool aborts = rank == i % RANKS;
        if (aborts) {
            pthread_create(&thread, NULL, abort_later, &a);
        }
        uint64_t succeeded = 0;
        for (int turn = 0; rc == 0; turn++) {
            rc = muster_all_reduce(a.comm, data, data, turn % 3 ? 30000 : 3, MUSTER_F32, MUSTER_SUM,
                                   &err);
            succeeded += rc == 0;
        }
        if (aborts) {
            pthread_join(thread, NULL);
            WORLD_CHECK(succeeded == a.at_abort, "%llu calls succeeded, %llu before the abort",
                        (unsigned long long)succeeded, (unsigned long long)a.at_abort);
        }
        WORLD_CHECK(rc == MUSTER_EABORTED, "%d %s", rc, err.text);
        (void)pthread_barrier_wait(&shared->barrier);
        muster_comm_free(a.comm);
    }
    return 0;
}

static void after_an_abort_nothing_succeeds(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(abort_in_the_middle, "auto"), 0);
    assert_int_equal(run_ranks(abort_in_the_middle, "tcp"), 0);
}

enum { PARTS_TURNS = 300, ELEMENTS = 1 << 16, UNTOUCHED = 0x77 };

struct summing {
    struct muster_comm *comm;
    const uint16_t *in;
    uint16_t *out;
    int rc;
};

static void *sum_parts(void *context)
{
    struct summing *s = context;
    struct muster_err err = MUSTER_ERR_INIT;
    do {
        s->rc = muster_all_reduce_parts(s->comm, s->in, 0, 1, 1, s->out, ELEMENTS, MUSTER_F16,
                                        MUSTER_SUM, &err);
    } while (s->rc == 0);
    return NULL;
}

static void abort_after(struct muster_comm *comm, uint64_t calls)
{
    struct muster_comm_state state = MUSTER_COMM_STATE_INIT;
    do {
        muster_comm_query(comm, &state, NULL, NULL);
    } while (state.completed < calls);
    muster_comm_abort(comm);
}

/* Sums of parts are several calls, with work of this rank between them. */
static void after_an_abort_no_sum_of_parts_goes_on(void **state)
{
    (void)state;
    static uint16_t in[ELEMENTS], out[ELEMENTS];
    struct muster_comm_options alone = MUSTER_COMM_OPTIONS_INIT;
    for (int turn = 0; turn < PARTS_TURNS; turn++) {
        struct muster_comm *comm;
        struct muster_err err = MUSTER_ERR_INIT;
        assert_int_equal(muster_comm_create(&alone, &comm, &err), 0);
        struct summing s = {.comm = comm, .in = in, .out = out};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, sum_parts, &s), 0);
        abort_after(comm, 2 + (uint64_t)turn % 13);
        memset(out, UNTOUCHED, sizeof out);
        pthread_join(thread, NULL);
        assert_int_equal(s.rc, MUSTER_EABORTED);
        for (int i = 0; i < ELEMENTS; i++) {
            assert_int_equal(out[i], UNTOUCHED * 0x101);
        }
        muster_comm_free(comm);
    }
}

int main(void)
{
    pthread_barrierattr_t between_processes;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_init(&between_processes);
    pthread_barrierattr_setpshared(&between_processes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->barrier, &between_processes, RANKS);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cycles_leak_nothing),
        cmocka_unit_test(many_at_once),
        cmocka_unit_test(any_list_of_members),
        cmocka_unit_test(a_member_is_an_incarnation),
        cmocka_unit_test(a_member_is_in_the_list_once),
        cmocka_unit_test(after_an_abort_nothing_succeeds),
        cmocka_unit_test(after_an_abort_no_sum_of_parts_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
