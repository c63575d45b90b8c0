/* Checks lanes in a world of one rank: who steps which request, in which order, and how often
 * streams are looked at. */
#include "comm/progress/lane.h"

#include "base/testing/test.h"
#include "comm/api/call.h"
#include "comm/api/prepare.h"
#include "comm/messages/streams.h"
#include "comm/progress/request.h"
#include "comm/shm/line_ring.h"

#include <stdlib.h>

enum { RECEIVES = 50, ROUNDS = 3000, EACH = 8 };

static struct muster_comm *comm;
static _Atomic int looks; /* looks at a stream */

bool __real_line_ring_take_header(struct stream_ring *ring, struct line_ring_end *end, void *ret);
bool __wrap_line_ring_take_header(struct stream_ring *ring, struct line_ring_end *end, void *ret);

bool __wrap_line_ring_take_header(struct stream_ring *ring, struct line_ring_end *end, void *ret)
{
    looks++;
    return __real_line_ring_take_header(ring, end, ret);
}

static int make_comm(void **state)
{
    (void)state;
    struct muster_comm_options alone = MUSTER_COMM_OPTIONS_INIT;
    return muster_comm_create(&alone, &comm, NULL);
}

static int free_comm(void **state)
{
    (void)state;
    muster_comm_free(comm);
    return 0;
}

static struct lane *messages(void)
{
    return &comm->lanes[LANE_MESSAGES];
}

/* Makes a request as muster_start does, but does not append it. */
static struct muster_request *make(enum muster_collective kind, int tag, int32_t *value)
{
    struct muster_call call = {.struct_size = sizeof(struct muster_call),
                               .kind = kind,
                               .type = MUSTER_I32,
                               .tag = tag,
                               .in = value,
                               .out = value,
                               .count = 1};
    struct muster_request *request = calloc(1, sizeof *request);
    request->comm = comm;
    pthread_mutex_init(&request->mutex, NULL);
    assert_int_equal(prepare_call(comm, &call, &request->task.call, NULL), 0);
    call_begin(comm, &request->task);
    request->task.queued = true;
    return request;
}

/* Appends a request as muster_start does, but without the progress thread, which would also step
 * it. */
static struct muster_request *append(enum muster_collective kind, int tag, int32_t *value)
{
    struct muster_request *request = make(kind, tag, value);
    lane_append(messages(), request);
    return request;
}

static void all_receives_look_once(void **state)
{
    (void)state;
    static int32_t values[RECEIVES];
    struct muster_request *requests[RECEIVES];
    for (int i = 0; i < RECEIVES; i++) {
        requests[i] = append(MUSTER_RECV, i, &values[i]);
    }
    looks = 0;
    assert_false(lane_try(comm, messages(), false));
    assert_int_equal(looks, 1);
    assert_int_equal(lane_in_flight(comm), RECEIVES);
    muster_comm_abort(comm);
    assert_int_equal(lane_in_flight(comm), 0);
    for (int i = 0; i < RECEIVES; i++) {
        assert_int_equal(muster_request_test(requests[i], NULL), MUSTER_EABORTED);
        muster_request_free(requests[i]);
    }
}

/* Messages end in any order, also in the middle of the lane. */
static void messages_end_as_they_come(void **state)
{
    (void)state;
    int32_t got[3] = {0}, sent[3] = {10, 11, 12};
    struct muster_request *receives[3], *sends[3];
    for (int i = 0; i < 3; i++) {
        receives[i] = append(MUSTER_RECV, i, &got[i]);
    }
    assert_false(lane_try(comm, messages(), false));
    static const int order[3] = {1, 2, 0};
    for (int i = 0; i < 3; i++) {
        int tag = order[i];
        sends[tag] = append(MUSTER_SEND, tag, &sent[tag]);
        assert_true(lane_try(comm, messages(), false));
        assert_int_equal(muster_request_test(sends[tag], NULL), 1);
        assert_int_equal(muster_request_test(receives[tag], NULL), 1);
        assert_int_equal(got[tag], sent[tag]);
        assert_int_equal(lane_in_flight(comm), 2 - i);
    }
    assert_null(lane_first(messages()));
    assert_false(lane_try(comm, messages(), false));
    for (int i = 0; i < 3; i++) {
        muster_request_free(sends[i]);
        muster_request_free(receives[i]);
    }
}

/* Only the holder of the lane steps it, and no other thread waits for the holder. */
static void a_lane_has_one_holder(void **state)
{
    (void)state;
    int32_t value = 7;
    struct muster_request *send = append(MUSTER_SEND, 0, &value);
    assert_true(lane_enter(messages()));
    assert_false(lane_try(comm, messages(), false));
    assert_int_equal(muster_request_test(send, NULL), 0);
    lane_leave(messages());
    assert_true(lane_try(comm, messages(), false));
    assert_int_equal(muster_request_test(send, NULL), 1);
    muster_request_free(send);
}

static struct muster_call send_of(int32_t *value)
{
    return (struct muster_call){.struct_size = sizeof(struct muster_call),
                                .kind = MUSTER_SEND,
                                .type = MUSTER_I32,
                                .in = value,
                                .count = 1};
}

static bool send_now(int32_t value)
{
    struct muster_call call = send_of(&value);
    struct prepared prepared;
    assert_int_equal(prepare_call(comm, &call, &prepared, NULL), 0);
    return lane_send_now(comm, &prepared);
}

/* A small send ends when it is started, as long as the ring has room. */
static void a_small_send_ends_with_its_start(void **state)
{
    (void)state;
    size_t ring_bytes = comm->messages->streams[0].out.ring_bytes;
    const int32_t fit = (int32_t)(ring_bytes / 2 / SEGMENT_LINE) - 1; /* each message takes two
                                                                         lines */
    for (int32_t i = 0; i <= fit; i++) {
        assert_int_equal(send_now(i), i < fit);
    }
    for (int32_t i = 0, got = -1; i < fit; i++) {
        assert_int_equal(muster_recv(comm, &got, 1, MUSTER_I32, 0, 0, NULL, NULL), 0);
        assert_int_equal(got, i);
    }
    for (int32_t i = 0; i < fit; i++) {
        struct muster_call call = send_of(&i);
        struct muster_request *request;
        assert_int_equal(muster_start(comm, &call, &request, NULL), 0);
        assert_int_equal(muster_request_test(request, NULL), 1);
        assert_int_equal(lane_in_flight(comm), 0);
        muster_request_free(request);
    }
}

/* A send that no thread has stepped yet keeps its place in the lane. */
static void a_send_at_once_goes_behind_those_before(void **state)
{
    (void)state;
    int32_t first = 1, second = 2, got = 0;
    struct muster_request *request = append(MUSTER_SEND, 0, &first);
    assert_false(send_now(second));
    assert_true(lane_try(comm, messages(), false));
    assert_true(send_now(second));
    for (int32_t i = 1; i <= 2; i++) {
        assert_int_equal(muster_recv(comm, &got, 1, MUSTER_I32, 0, 0, NULL, NULL), 0);
        assert_int_equal(got, i);
    }
    muster_request_free(request);
}

/* ---- by two threads ---- */

static _Atomic bool stopped;

static void *hold_and_step(void *unused)
{
    (void)unused;
    while (!atomic_load(&stopped)) {
        (void)lane_try(comm, messages(), false);
    }
    return NULL;
}

/* Starts EACH receives and the sends for them, as the holder of the lane if possible, and waits for
 * all. */
static void exchange_with_self(int round)
{
    struct muster_request *requests[2 * EACH];
    int32_t sent[EACH], got[EACH];
    for (int i = 0; i < 2 * EACH; i++) {
        int n = i % EACH;
        sent[n] = round + n;
        requests[i] = make(i < EACH ? MUSTER_RECV : MUSTER_SEND, 0, i < EACH ? &got[n] : &sent[n]);
        lane_start(comm, requests[i], (round + i) % 3 != 0);
    }
    for (int i = 0; i < 2 * EACH; i++) {
        while (muster_request_test(requests[i], NULL) == 0) {
            (void)lane_try(comm, messages(), false);
        }
        muster_request_free(requests[i]);
    }
    for (int i = 0; i < EACH; i++) {
        assert_int_equal(got[i], sent[i]);
    }
    assert_true(lane_is_empty(messages()) && lane_count(messages()) == 0);
}

static void one_starts_requests_while_another_ends_them(void **state)
{
    (void)state;
    pthread_t holder;
    atomic_store(&stopped, false);
    assert_int_equal(pthread_create(&holder, NULL, hold_and_step, NULL), 0);
    for (int round = 0; round < ROUNDS; round++) {
        exchange_with_self(round);
    }
    atomic_store(&stopped, true);
    assert_int_equal(pthread_join(holder, NULL), 0);
    assert_null(lane_first(messages()));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_receives_look_once, make_comm, free_comm),
        cmocka_unit_test_setup_teardown(messages_end_as_they_come, make_comm, free_comm),
        cmocka_unit_test_setup_teardown(a_lane_has_one_holder, make_comm, free_comm),
        cmocka_unit_test_setup_teardown(a_small_send_ends_with_its_start, make_comm, free_comm),
        cmocka_unit_test_setup_teardown(a_send_at_once_goes_behind_those_before, make_comm,
                                        free_comm),
        cmocka_unit_test_setup_teardown(one_starts_requests_while_another_ends_them, make_comm,
                                        free_comm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
