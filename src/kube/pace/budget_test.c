/* The budget: bursts, the rate after them, and no more than that in any window. */
#include "base/testing/test.h"
#include "kube/pace/budget.h"

static const int64_t ms = 1000000;

/* Returns how many tokens are given in the time from `from` on, if one is requested each
 * millisecond. */
static int taken(struct budget *b, int64_t from_ms, int64_t for_ms)
{
    int count = 0;
    for (int64_t at = from_ms; at < from_ms + for_ms; at++) {
        while (budget_take(b, at * ms) == 0) {
            count++;
        }
    }
    return count;
}

static void a_burst_comes_at_once_then_the_rate(void **state)
{
    (void)state;
    struct budget b;
    budget_init(&b, 20, 30);
    assert_int_equal(taken(&b, 1000, 1), 30);
    assert_int_equal(taken(&b, 1001, 10000), 200);
}

static void who_waits_is_told_how_long(void **state)
{
    (void)state;
    struct budget b;
    budget_init(&b, 10, 1);
    assert_int_equal(budget_take(&b, 0), 0);
    assert_int_equal(budget_take(&b, 0), 100 * ms);
    assert_int_equal(budget_take(&b, 60 * ms), 40 * ms);
    assert_int_equal(budget_take(&b, 100 * ms), 0);
    assert_int_equal(budget_take(&b, 100 * ms), 100 * ms);
}

static void a_long_rest_saves_one_burst_only(void **state)
{
    (void)state;
    struct budget b;
    budget_init(&b, 1000, 50);
    (void)taken(&b, 0, 100);
    assert_int_equal(taken(&b, 3600000, 1), 50);
}

/* Property: a window of any length has at most burst + rate * length tokens. */
static void no_window_holds_more(void **state)
{
    (void)state;
    static int at_ms[4000];
    struct budget b;
    int count = 0;
    uint32_t seed = 7;
    budget_init(&b, 100, 25);
    for (int t = 0; t < 20000; t++) {
        seed = seed * 1664525 + 1013904223;
        for (int ask = 0; ask < (int)(seed >> 28); ask++) {
            if (budget_take(&b, t * ms) == 0) {
                at_ms[count++] = t;
            }
        }
    }
    assert_in_range(count, 2000, 2025);
    for (int i = 0; i < count; i++) {
        for (int k = i; k < count && at_ms[k] - at_ms[i] <= 2000; k++) {
            assert_true(k - i + 1 <= 25 + (at_ms[k] - at_ms[i]) / 10 + 1);
        }
    }
}

static void odd_limits_do_no_harm(void **state)
{
    (void)state;
    struct budget b;
    budget_init(&b, 0, 0);
    assert_int_equal(taken(&b, 0, 0), 0);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(budget_take(&b, 0), 0);
    }
    budget_init(&b, 1e-300, INT32_MAX);
    assert_int_equal(budget_take(&b, 5), 0);
    budget_init(&b, 1e300, -4);
    assert_int_equal(budget_take(&b, 5), 0);
    assert_int_equal(budget_take(&b, 5), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_burst_comes_at_once_then_the_rate),
        cmocka_unit_test(who_waits_is_told_how_long),
        cmocka_unit_test(a_long_rest_saves_one_burst_only),
        cmocka_unit_test(no_window_holds_more),
        cmocka_unit_test(odd_limits_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
