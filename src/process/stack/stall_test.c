/* Stalls, found by samples. */
#include "process/stack/stall.h"

#include "base/testing/test.h"

/* Rows "now output cpu call -> verdict", in order, with a limit of 10 s. */
struct row {
    int64_t now_s;
    uint64_t output, cpu_ms, call;
    enum stall_verdict verdict;
};

static void expect(int64_t limit_ms, const struct row *rows, size_t count)
{
    struct stall stall;
    stall_init(&stall, limit_ms);
    for (size_t i = 0; i < count; i++) {
        const struct stall_sample sample = {rows[i].now_s * 1000, rows[i].output, rows[i].cpu_ms,
                                            rows[i].call, false};
        assert_int_equal(stall_step(&stall, &sample), rows[i].verdict);
    }
}
#define EXPECT(limit_ms, ...)                                                                      \
    expect(limit_ms, (const struct row[]){__VA_ARGS__},                                            \
           sizeof(const struct row[]){__VA_ARGS__} / sizeof(struct row))

static void silent_and_idle_is_told_once(void **state)
{
    (void)state;
    EXPECT(10000, {0, 5, 100, 0, STALL_NONE}, {9, 5, 100, 0, STALL_NONE},
           {10, 5, 120, 0, STALL_SILENT}, {11, 5, 120, 0, STALL_NONE},
           {1000, 5, 150, 0, STALL_NONE});
}

static void output_ends_it_and_another_is_told_again(void **state)
{
    (void)state;
    EXPECT(10000, {0, 5, 0, 0, STALL_NONE}, {10, 5, 0, 0, STALL_SILENT}, {12, 6, 0, 0, STALL_NONE},
           {21, 6, 0, 0, STALL_NONE}, {22, 6, 0, 0, STALL_SILENT});
}

static void work_is_no_stall(void **state)
{
    (void)state;
    EXPECT(10000, {0, 5, 0, 0, STALL_NONE}, {9, 5, 5000, 0, STALL_NONE},
           {18, 5, 9000, 0, STALL_NONE}, {27, 5, 14000, 0, STALL_NONE});
}

/* 2 percent, and a little for the start: this is a heartbeat and not a computation. */
static void beats_are_no_work(void **state)
{
    (void)state;
    EXPECT(10000, {0, 0, 0, 0, STALL_NONE}, {5, 0, 100, 0, STALL_NONE},
           {10, 0, 200, 0, STALL_SILENT});
    EXPECT(10000, {0, 0, 0, 0, STALL_NONE}, {5, 0, 100, 0, STALL_NONE}, {10, 0, 300, 0, STALL_NONE},
           {20, 0, 400, 0, STALL_SILENT});
}

/* On an overloaded machine a computing rank may get no processor for the whole limit. */
static void who_waits_for_a_processor_is_not_idle(void **state)
{
    (void)state;
    struct stall stall;
    stall_init(&stall, 10000);
    for (int64_t s = 0; s < 30; s += 5) {
        const struct stall_sample starved = {.now_ms = s * 1000, .runnable = true};
        assert_int_equal(stall_step(&stall, &starved), STALL_NONE);
    }
    const struct stall_sample asleep = {.now_ms = 35000};
    assert_int_equal(stall_step(&stall, &asleep), STALL_SILENT);
}

/* The time of a child that ended and was not waited for is missing in the sum. */
static void a_sum_that_falls_is_work(void **state)
{
    (void)state;
    EXPECT(10000, {0, 0, 9000, 0, STALL_NONE}, {9, 0, 100, 0, STALL_NONE},
           {18, 0, 100, 0, STALL_NONE}, {19, 0, 100, 0, STALL_SILENT});
}

/* The rank may spin, or print from another thread. */
static void in_one_call_for_long(void **state)
{
    (void)state;
    EXPECT(10000, {0, 0, 0, 7, STALL_NONE}, {5, 1, 5000, 7, STALL_NONE},
           {10, 2, 10000, 7, STALL_IN_CALL}, {15, 3, 15000, 7, STALL_NONE},
           {20, 4, 20000, 8, STALL_NONE}, {29, 5, 29000, 8, STALL_NONE},
           {30, 6, 30000, 8, STALL_IN_CALL}, {31, 7, 31000, 0, STALL_NONE},
           {45, 8, 45000, 0, STALL_NONE});
}

/* A rank that is silent in a call has one stall, not two. */
static void both_at_once_are_told_once(void **state)
{
    (void)state;
    EXPECT(10000, {0, 0, 0, 0, STALL_NONE}, {4, 0, 0, 7, STALL_NONE}, {10, 0, 0, 7, STALL_SILENT},
           {14, 0, 0, 7, STALL_NONE}, {20, 1, 0, 7, STALL_NONE}, {31, 1, 0, 0, STALL_NONE});
}

static void zero_turns_it_off(void **state)
{
    (void)state;
    EXPECT(0, {0, 0, 0, 7, STALL_NONE}, {1000, 0, 0, 7, STALL_NONE});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silent_and_idle_is_told_once),
        cmocka_unit_test(output_ends_it_and_another_is_told_again),
        cmocka_unit_test(work_is_no_stall),
        cmocka_unit_test(beats_are_no_work),
        cmocka_unit_test(who_waits_for_a_processor_is_not_idle),
        cmocka_unit_test(a_sum_that_falls_is_work),
        cmocka_unit_test(in_one_call_for_long),
        cmocka_unit_test(both_at_once_are_told_once),
        cmocka_unit_test(zero_turns_it_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
