/* Windows: several messages each way, all started before any is waited for; those of many bytes may
 * be read out of the sender's memory (comm/messages/offer.c). */
#include "world.h"

#include "base/testing/test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MESSAGES = 8, MOST_BYTES = 900 * 1000, TURNS = 12 };

struct window {
    int rank, to, from;
    char *out[MESSAGES], *in[MESSAGES];
    struct muster_request *sends[MESSAGES], *receives[MESSAGES];
};

/* Small and large messages, in another order in each turn. */
static size_t bytes_of(int rank, int turn, int message)
{
    static const size_t most[] = {100, 9000, 70000, 200000, MOST_BYTES};
    uint64_t hash = world_hash((uint64_t)turn, (uint64_t)rank, (uint64_t)message);
    size_t limit = most[hash % (sizeof most / sizeof most[0])];
    return 1 + (size_t)(hash >> 8) % limit;
}

/* Returns the next place to look at: some bytes, and the last one. The bytes between them are in
 * the same pages. */
static size_t next_place(size_t at, size_t bytes)
{
    size_t next = at + 509;
    return at == bytes - 1 ? bytes : next < bytes ? next : bytes - 1;
}

static char byte_at(int rank, int turn, int message, size_t at)
{
    return (char)world_hash((uint64_t)(turn * MESSAGES + message), (uint64_t)rank, at);
}

static int window_start(struct muster_comm *comm, struct window *w, int turn)
{
    struct muster_err err = MUSTER_ERR_INIT;
    memset(w->sends, 0, sizeof w->sends);
    memset(w->receives, 0, sizeof w->receives);
    for (int i = 0; i < 2 * MESSAGES; i++) {
        /* In every other turn the sends come first: some messages come before their receives. */
        bool sends = (i < MESSAGES) == (turn % 2 == 0);
        int m = i % MESSAGES;
        size_t bytes = bytes_of(sends ? w->rank : w->from, turn, m);
        struct muster_call call = {.struct_size = sizeof(struct muster_call),
                                   .kind = sends ? MUSTER_SEND : MUSTER_RECV,
                                   .type = MUSTER_U8,
                                   .peer = sends ? w->to : w->from,
                                   .tag = m % 3,
                                   .in = w->out[m],
                                   .out = w->in[m],
                                   .count = bytes};
        for (size_t at = 0; sends && at < bytes; at = next_place(at, bytes)) {
            w->out[m][at] = byte_at(w->rank, turn, m, at);
        }
        int rc = muster_start(comm, &call, sends ? &w->sends[m] : &w->receives[m], &err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static int check_received(const struct window *w, int turn, int m)
{
    size_t bytes = bytes_of(w->from, turn, m);
    for (size_t at = 0; at < bytes; at = next_place(at, bytes)) {
        WORLD_CHECK(w->in[m][at] == byte_at(w->from, turn, m, at),
                    "turn %d, message %d of %zu bytes: byte %zu differs", turn, m, bytes, at);
    }
    return 0;
}

/* Waits for the calls that were started. Returns `first` if it is an error, or else their first
 * error; 1 if a call succeeded with wrong data. */
static int window_wait(const struct window *w, int turn, int first)
{
    struct muster_err err = MUSTER_ERR_INIT;
    for (int i = 0; i < 2 * MESSAGES; i++) {
        int m = i / 2;
        struct muster_request *request = i % 2 ? w->sends[m] : w->receives[m];
        if (!request) {
            continue;
        }
        int rc = muster_request_wait(request, -1, &err);
        muster_request_free(request);
        if (rc == 0 && i % 2 == 0 && check_received(w, turn, m) != 0) {
            return 1;
        }
        first = first < 0 ? first : rc;
    }
    return first;
}

static int window_open(struct muster_comm *comm, struct window *ret)
{
    int rank = muster_comm_rank(comm), size = muster_comm_size(comm);
    *ret = (struct window){.rank = rank, .to = (rank + 1) % size, .from = (rank + size - 1) % size};
    for (int m = 0; m < MESSAGES; m++) {
        ret->out[m] = calloc(1, MOST_BYTES);
        ret->in[m] = calloc(1, MOST_BYTES);
        WORLD_CHECK(ret->out[m] && ret->in[m], "no memory");
    }
    return 0;
}

static void window_close(struct window *w)
{
    for (int m = 0; m < MESSAGES; m++) {
        free(w->out[m]);
        free(w->in[m]);
    }
}

static int windows_of_all_sizes(struct muster_comm *comm, void *context)
{
    (void)context;
    struct window w;
    WORLD_CHECK(window_open(comm, &w) == 0, "no window");
    for (int turn = 0; turn < TURNS; turn++) {
        int rc = window_wait(&w, turn, window_start(comm, &w, turn));
        WORLD_CHECK(rc == 0, "turn %d: %d", turn, rc);
    }
    window_close(&w);
    return 0;
}

/* The kernel kills this process, wherever it is at that time. */
static int dies_in_us(long us)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    struct itimerspec when = {.it_value = {.tv_nsec = us * 1000}};
    timer_t timer;
    return timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &when, NULL);
}

/* Each message that succeeds has brought what was sent, even the last one before the death. */
static int dies_within_windows(struct muster_comm *comm, void *context)
{
    const long *us = context;
    struct window w;
    int rc = window_open(comm, &w);
    WORLD_CHECK(rc == 0, "no window");
    WORLD_CHECK(w.rank < muster_comm_size(comm) - 1 || dies_in_us(*us) == 0, "no timer");
    for (int turn = 0; rc == 0; turn++) {
        rc = window_wait(&w, turn, window_start(comm, &w, turn));
    }
    window_close(&w);
    WORLD_CHECK(rc == MUSTER_EPEERDEAD || rc == MUSTER_EABORTED, "%d", rc);
    return 0;
}

static void test_windows_of_all_sizes(void **state)
{
    for (int size = 1; size <= 4; size++) {
        for (int kind = WORLD_PROCESSES; kind <= WORLD_THREADS; kind++) {
            struct world w = {.kind = (enum world_kind)kind, .size = size, .transport = *state};
            assert_int_equal(world_run(&w, windows_of_all_sizes, NULL), 0);
        }
    }
}

static void test_killed_within_windows(void **state)
{
    for (long us = 300; us < 20000; us = us * 3 / 2) {
        struct world w = {
            .kind = WORLD_PROCESSES, .size = 2, .transport = *state, .killed = WORLD_RANK(1)};
        assert_int_equal(world_run(&w, dies_within_windows, &us), 0);
    }
}

int main(int argc, char **argv)
{
    void *transport = argc > 1 ? argv[1] : "shm";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_windows_of_all_sizes, transport),
        cmocka_unit_test_prestate(test_killed_within_windows, transport),
    };
    return cmocka_run_group_tests_name(transport, tests, NULL, NULL);
}
