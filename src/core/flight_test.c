/* Checks what a reader takes from a flight record. */
#include "core/flight.h"

#include "base/testing/test.h"

#include <string.h>

static void enter(struct flight *flight, uint64_t number, uint64_t shape, uint64_t count)
{
    struct flight_call *call = &flight->calls[number % FLIGHT_CALLS];
    call->number = number;
    call->shape = shape;
    call->count = count;
}

static void end(struct flight *flight, uint64_t number)
{
    flight->calls[number % FLIGHT_CALLS].ended = number;
}

static void the_oldest_that_is_not_over_is_pending(void **state)
{
    (void)state;
    struct flight flight = {0};
    uint64_t shape = 0, count = 0;
    assert_int_equal(flight_pending(&flight, &shape, &count), 0);
    assert_int_equal(flight_newest(&flight, &shape, &count), 0);
    for (uint64_t number = 1; number <= 200; number++) {
        enter(&flight, number, MUSTER_BARRIER, number);
        assert_int_equal(flight_pending(&flight, &shape, &count), number);
        assert_int_equal(count, number);
        end(&flight, number);
        assert_int_equal(flight_pending(&flight, &shape, &count), 0);
        assert_int_equal(flight_newest(&flight, &shape, &count), number);
    }
    enter(&flight, 201, MUSTER_BARRIER, 1);
    enter(&flight, 202, MUSTER_ALL_GATHER, 2);
    assert_int_equal(flight_pending(&flight, &shape, &count), 201);
    end(&flight, 201);
    assert_int_equal(flight_pending(&flight, &shape, &count), 202);
    assert_int_equal(shape, MUSTER_ALL_GATHER);
    assert_true(flight_has_ended(&flight, 201));
    assert_false(flight_has_ended(&flight, 202));
}

/* Another record takes its place 64 calls later; while that one is written, none can be read. */
static void a_record_that_is_another_calls_is_not_read(void **state)
{
    (void)state;
    struct flight flight = {0};
    uint64_t shape = 9, count = 9;
    assert_int_equal(flight_read(&flight, 5, &shape, &count), 0);
    enter(&flight, 5, MUSTER_BARRIER, 1);
    assert_int_equal(flight_read(&flight, 5, &shape, &count), 1);
    enter(&flight, 5 + FLIGHT_CALLS, MUSTER_ALL_GATHER, 2);
    assert_int_equal(flight_read(&flight, 5, &shape, &count), 0);
    assert_int_equal(count, 1);
    assert_int_equal(flight_read(&flight, 5 + FLIGHT_CALLS, &shape, &count), 1);
    assert_int_equal(count, 2);
    flight.calls[5].number = 0;
    assert_int_equal(flight_read(&flight, 5 + FLIGHT_CALLS, &shape, &count), 0);
    assert_int_equal(flight_newest(&flight, &shape, &count), 0);
}

static void the_message_that_waits_longest_is_named(void **state)
{
    (void)state;
    struct flight flight = {0};
    bool receives = false;
    int32_t peer = 0, tag = 0;
    assert_int_equal(flight_waiting(&flight, &receives, &peer, &tag), 0);
    flight.messages[0] = (struct flight_message){.number = 9, .peer = 4, .tag = 1};
    flight.messages[3] = (struct flight_message){.number = 7, .peer = -1, .tag = 5, .receives = 1};
    assert_int_equal(flight_waiting(&flight, &receives, &peer, &tag), 7);
    assert_true(receives);
    assert_int_equal(peer, -1);
    assert_int_equal(tag, 5);
    flight.messages[3].number = 0;
    assert_int_equal(flight_waiting(&flight, &receives, &peer, &tag), 9);
    assert_false(receives);
    assert_int_equal(peer, 4);
}

static void names(void **state)
{
    (void)state;
    char text[64];
    flight_name(MUSTER_ALL_REDUCE | MUSTER_F32 << 8 | MUSTER_SUM << 16, 4, text, sizeof text);
    assert_string_equal(text, "all_reduce of 4 f32 by sum");
    flight_name(MUSTER_BROADCAST | MUSTER_I64 << 8 | 3ULL << 32, 7, text, sizeof text);
    assert_string_equal(text, "broadcast of 7 i64, root 3");
    flight_name(MUSTER_BARRIER, 0, text, sizeof text);
    assert_string_equal(text, "barrier");
}

/* Numbers that another build has written have no name here. */
static void unknown_numbers_have_no_name(void **state)
{
    (void)state;
    char text[64];
    flight_name(200 | 201 << 8 | 202 << 16, 4, text, sizeof text);
    assert_string_equal(text, "unknown of 4 unknown");
    flight_name(MUSTER_ALL_REDUCE | 201 << 8 | 202 << 16, 4, text, 12);
    assert_string_equal(text, "all_reduce ");
    assert_null(flight_kind_name((enum muster_collective)200));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_oldest_that_is_not_over_is_pending),
        cmocka_unit_test(a_record_that_is_another_calls_is_not_read),
        cmocka_unit_test(the_message_that_waits_longest_is_named),
        cmocka_unit_test(names),
        cmocka_unit_test(unknown_numbers_have_no_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
