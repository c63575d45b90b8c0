/* Checks which requests of a lane are stepped: of collectives only the first, of messages all. A
 * request that ends is removed wherever it is in the lane, its end is reported once, and the next
 * one begins in the same turn. */
#include "comm/progress/lane.h"

#include "base/testing/test.h"
#include "comm/progress/request.h"

#include <stdlib.h>

enum { MOST = 8 };

/* What a step of request n returns, how often it was called, and what was reported about its
 * end. */
static struct {
    int result, steps, told, code;
    struct muster_request *request;
    struct muster_request *brings; /* a request that is appended when this one ends */
} all[MOST];

static struct muster_comm *comm;

static int step(struct muster_comm *its, struct task *task, struct muster_err *err)
{
    assert_ptr_equal(its, comm);
    all[task->call.tag].steps++;
    return all[task->call.tag].result < 0
               ? muster_fail(err, all[task->call.tag].result, "of %d", task->call.tag)
               : all[task->call.tag].result;
}

static void tell(void *context, int code)
{
    int n = *(int *)context;
    all[n].told++;
    all[n].code = code;
    if (all[n].brings) {
        lane_append(&comm->lanes[all[n].request->task.lane], all[n].brings);
    }
}

static struct muster_request *request(int n, int lane)
{
    static int numbers[MOST];
    struct muster_request *r = calloc(1, sizeof *r);
    assert_non_null(r);
    numbers[n] = n;
    r->comm = comm;
    r->task = (struct task){.call = {.kind = MUSTER_BARRIER, .tag = n},
                            .lane = lane,
                            .number = (uint64_t)n + 1,
                            .step = step};
    r->state = REQUEST_TELLS;
    r->notify = tell;
    r->notify_context = &numbers[n];
    pthread_mutex_init(&r->mutex, NULL);
    all[n].request = r;
    return r;
}

static int start(void **state)
{
    struct muster_comm_options alone = MUSTER_COMM_OPTIONS_INIT;
    (void)state;
    memset(all, 0, sizeof all);
    return muster_comm_create(&alone, &comm, NULL);
}

static int stop(void **state)
{
    (void)state;
    for (int n = 0; n < MOST; n++) {
        muster_request_free(all[n].request);
    }
    muster_comm_free(comm);
    return 0;
}

static struct lane *fill(int index, int num)
{
    struct lane *lane = &comm->lanes[index];
    for (int n = 0; n < num; n++) {
        lane_append(lane, request(n, index));
    }
    assert_int_equal(lane_in_flight(comm), num);
    return lane;
}

static void expect_steps(const int *steps, int num)
{
    for (int n = 0; n < num; n++) {
        assert_int_equal(all[n].steps, steps[n]);
    }
}

static void expect_queue(struct lane *lane, const int *numbers, int num)
{
    struct muster_request *at = lane_first(lane), *last = NULL;
    for (int i = 0; i < num; i++, last = at, at = at->next) {
        assert_ptr_equal(at, all[numbers[i]].request);
    }
    assert_null(at);
    assert_true(num == 0 || lane->last == last);
    assert_int_equal(lane_count(lane), num);
    assert_int_equal(lane_is_empty(lane), num == 0);
}

static void collectives_go_one_after_the_other(void **state)
{
    (void)state;
    struct lane *lane = fill(LANE_MAIN, 3);
    assert_int_equal(lane_try(comm, lane, false), 0);
    expect_steps((int[]){1, 0, 0}, 3);
    all[0].result = 1;
    assert_int_not_equal(lane_try(comm, lane, false), 0);
    expect_steps((int[]){2, 1, 0}, 3);
    expect_queue(lane, (int[]){1, 2}, 2);
    assert_int_equal(all[0].told, 1);
    assert_int_equal(all[0].code, 0);
    assert_int_equal(muster_request_test(all[0].request, NULL), 1);
    assert_int_equal(muster_request_test(all[1].request, NULL), 0);
    all[1].result = all[2].result = 1;
    assert_int_not_equal(lane_try(comm, lane, false), 0);
    expect_steps((int[]){2, 2, 1}, 3);
    expect_queue(lane, NULL, 0);
    assert_int_equal(comm->completed, 3);
    assert_int_equal(lane_try(comm, lane, false), 0);
}

static void what_an_end_brings_is_stepped_in_the_same_turn(void **state)
{
    (void)state;
    struct lane *lane = fill(LANE_MAIN, 1);
    all[0].result = all[1].result = 1;
    all[0].brings = request(1, LANE_MAIN);
    assert_int_not_equal(lane_try(comm, lane, false), 0);
    assert_int_equal(all[1].told, 1);
    expect_queue(lane, NULL, 0);
}

static void a_lane_that_somebody_holds_is_left_alone(void **state)
{
    (void)state;
    struct lane *lane = fill(LANE_MAIN, 1);
    all[0].result = 1;
    assert_true(lane_enter(lane));
    assert_int_equal(lane_try(comm, lane, false), 0);
    lane_leave(lane);
    expect_steps((int[]){0}, 1);
    assert_int_not_equal(lane_try(comm, lane, false), 0);
}

static void an_error_closes_the_communicator_for_all(void **state)
{
    (void)state;
    struct muster_err err = MUSTER_ERR_INIT;
    struct lane *lane = fill(LANE_MAIN, 2);
    all[0].result = MUSTER_EMISMATCH;
    all[1].result = 1;
    assert_int_not_equal(lane_try(comm, lane, false), 0);
    expect_steps((int[]){1, 0}, 2); /* requests of a closed communicator are not stepped */
    assert_int_equal(phase_code(&comm->life), MUSTER_EMISMATCH);
    assert_int_equal(all[0].code, MUSTER_EMISMATCH);
    assert_int_equal(muster_request_test(all[0].request, &err), MUSTER_EMISMATCH);
    assert_string_equal(err.text, "of 0");
    assert_int_equal(muster_request_test(all[1].request, &err), MUSTER_EABORTED);
    assert_int_equal(all[0].told + all[1].told, 2);
    expect_queue(lane, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(collectives_go_one_after_the_other, start, stop),
        cmocka_unit_test_setup_teardown(what_an_end_brings_is_stepped_in_the_same_turn, start,
                                        stop),
        cmocka_unit_test_setup_teardown(a_lane_that_somebody_holds_is_left_alone, start, stop),
        cmocka_unit_test_setup_teardown(an_error_closes_the_communicator_for_all, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
