/* Which requests are sent again, and when. */
#include "base/testing/test.h"
#include "kube/pace/retry.h"

static struct retry_chance chance = {11};

static int64_t delay(long http_status, int64_t after_ms, bool connected, bool only_reads)
{
    const struct retry_outcome outcome = {http_status, after_ms, connected, only_reads, 1};
    return retry_delay_ms(&outcome, &chance);
}

static void only_what_was_not_done_is_sent_again(void **state)
{
    (void)state;
    assert_true(delay(429, -1, true, false) >= 0);
    assert_true(delay(503, 1000, true, false) >= 0);
    assert_true(delay(500, -1, true, true) >= 0);
    assert_true(delay(0, -1, false, false) >= 0);
    assert_true(delay(0, -1, true, true) >= 0);
    assert_true(delay(0, -1, true, false) < 0);   /* a write whose answer was lost */
    assert_true(delay(500, -1, true, false) < 0); /* a write that may have been done */
    assert_true(delay(404, -1, true, true) < 0);
    assert_true(delay(409, 1000, true, false) < 0);
    assert_true(delay(200, 1000, true, true) < 0);
}

static void the_server_s_word_counts(void **state)
{
    (void)state;
    assert_in_range(delay(429, 3000, true, false), 3000, 3000 + RETRY_FIRST_MS);
    assert_in_range(delay(429, INT64_MAX, true, false), RETRY_AFTER_MAX_MS,
                    RETRY_AFTER_MAX_MS + RETRY_FIRST_MS);
    assert_int_equal(retry_after_ms("7"), 7000);
    assert_int_equal(retry_after_ms("0"), 0);
    assert_int_equal(retry_after_ms("Wed, 21 Oct 2015 07:28:00 GMT"), 1000);
    assert_int_equal(retry_after_ms(""), -1);
    assert_int_equal(retry_after_ms(NULL), -1);
    assert_int_equal(retry_after_ms("-3"), -1);
    assert_true(retry_after_ms("99999999999999999999999") > RETRY_AFTER_MAX_MS);
}

static void delays_double_and_differ(void **state)
{
    (void)state;
    for (int failures = 1; failures < 40; failures++) {
        int64_t top = failures > 7 ? RETRY_MAX_MS : (int64_t)RETRY_FIRST_MS << (failures - 1);
        for (int i = 0; i < 100; i++) {
            int64_t ms = retry_backoff_ms(failures, RETRY_FIRST_MS, RETRY_MAX_MS, &chance);
            assert_in_range(ms, top / 2, top);
        }
    }
    int64_t first = retry_backoff_ms(5, RETRY_FIRST_MS, RETRY_MAX_MS, &chance);
    int same = 0;
    for (int i = 0; i < 20; i++) {
        same += retry_backoff_ms(5, RETRY_FIRST_MS, RETRY_MAX_MS, &chance) == first;
    }
    assert_true(same < 20);
}

static void tries_end(void **state)
{
    (void)state;
    const struct retry_outcome last = {429, 1000, true, false, RETRY_TRIES_MAX};
    assert_true(retry_delay_ms(&last, &chance) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_was_not_done_is_sent_again),
        cmocka_unit_test(the_server_s_word_counts),
        cmocka_unit_test(delays_double_and_differ),
        cmocka_unit_test(tries_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
