/* Checks that a time is counted in the first bucket whose limit it does not exceed. */
#include "base/histogram.h"

#include "base/testing/test.h"

static void times_are_counted_in_their_buckets(void **state)
{
    (void)state;
    static const double limits[] = {1e-8, 0.005, 1};
    struct histogram h;
    struct buf out;
    histogram_init(&h, limits, 3);
    static const int64_t times[] = {0, -7, 5, 6, 1000, 1001};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        histogram_add(&h, times[i]);
    }
    buf_init(&out, 4096);
    histogram_print(&h, "took_seconds", "verb=\"GET\"", &out);
    assert_string_equal(buf_str(&out), "took_seconds_bucket{verb=\"GET\",le=\"1e-08\"} 2\n"
                                       "took_seconds_bucket{verb=\"GET\",le=\"0.005\"} 3\n"
                                       "took_seconds_bucket{verb=\"GET\",le=\"1\"} 5\n"
                                       "took_seconds_bucket{verb=\"GET\",le=\"+Inf\"} 6\n"
                                       "took_seconds_sum{verb=\"GET\"} 2.012\n"
                                       "took_seconds_count{verb=\"GET\"} 6\n");
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(times_are_counted_in_their_buckets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
