/* Checks that channels and links end once, and never become active again. */
#include "comm/tcp/ending.h"

#include "base/testing/test.h"
#include "base/testing/test_assert.h"

static void states_only_go_forward(void **state)
{
    (void)state;
    for (int from = 0; from < CHANNEL_STATES; from++) {
        for (int to = 0; to < CHANNEL_STATES; to++) {
            assert_int_equal(ending_channel_may((enum channel_state)from, (enum channel_state)to),
                             to > from);
        }
    }
    for (int from = 0; from < LINK_STATES; from++) {
        for (int to = 0; to < LINK_STATES; to++) {
            assert_int_equal(ending_link_may((enum link_state)from, (enum link_state)to),
                             to > from);
        }
    }
}

static void the_same_state_again_is_nothing(void **state)
{
    (void)state;
    _Atomic int channel = CHANNEL_OPEN, link = LINK_SPEAKS;
    ending_channel(&channel, CHANNEL_ENDED);
    ending_channel(&channel, CHANNEL_ENDED);
    ending_link(&link, LINK_LEFT);
    ending_link(&link, LINK_LEFT);
    ending_link(&link, LINK_DRIED);
    assert_int_equal(channel, CHANNEL_ENDED);
    assert_int_equal(link, LINK_DRIED);
}

static void return_from_the_end(void)
{
    _Atomic int channel = CHANNEL_ENDED;
    ending_channel(&channel, CHANNEL_OPEN);
}

static void leave_after_silence(void)
{
    _Atomic int link = LINK_DRIED;
    ending_link(&link, LINK_LEFT);
}

static void what_the_tables_lack_is_asserted(void **state)
{
    (void)state;
    assert_true(test_is_asserted(return_from_the_end));
    assert_true(test_is_asserted(leave_after_silence));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_only_go_forward),
        cmocka_unit_test(the_same_state_again_is_nothing),
        cmocka_unit_test(what_the_tables_lack_is_asserted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
