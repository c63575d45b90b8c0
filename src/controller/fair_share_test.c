/* Checks how many places one, two and three holders get, for every number of places. */
#include "base/testing/test.h"
#include "controller/fair_share.h"

static size_t take_all(size_t taken, size_t places)
{
    size_t held = 0;
    while (fair_share_may_take(held, taken + held, places)) {
        held++;
    }
    return held;
}

static void one_holder_leaves_some_to_others(void **state)
{
    (void)state;
    for (size_t places = 4; places < 200; places++) {
        size_t first = take_all(0, places);
        size_t second = take_all(first, places);
        assert_true(first < places && first >= places / 2);
        assert_true(second > 0 && second <= first);
    }
    assert_int_equal(take_all(0, 21), 16);
    assert_int_equal(take_all(16, 21), 4);
    assert_int_equal(take_all(20, 21), 1);
    assert_int_equal(take_all(21, 21), 0);
    assert_int_equal(take_all(0, 1), 1);
}

static void as_many_places_as_one_holder_wants(void **state)
{
    (void)state;
    for (size_t wanted = 1; wanted < 200; wanted++) {
        assert_int_equal(take_all(0, fair_share_places(wanted)), wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_holder_leaves_some_to_others),
        cmocka_unit_test(as_many_places_as_one_holder_wants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
