/* Checks that the options of a program override the environment, and that notices are printed only
 * if they were requested. */
#include "comm/state/state.h"

#include "base/testing/test.h"

#include <stdlib.h>
#include <string.h>

static int forget_environment(void **state)
{
    (void)state;
    return unsetenv("MUSTER_TRANSPORT") | unsetenv("MUSTER_NOTICE_MS") | unsetenv("MUSTER_TUNING");
}

static int64_t notice_of(int64_t option_ms)
{
    struct muster_comm_options options = MUSTER_COMM_OPTIONS_INIT;
    struct muster_comm *comm = NULL;
    options.notice_ms = option_ms;
    assert_int_equal(muster_comm_create(&options, &comm, NULL), 0);
    int64_t notice_ms = comm->notice_ms;
    muster_comm_free(comm);
    return notice_ms;
}

static void notices_are_printed_only_where_asked_for(void **state)
{
    (void)state;
    assert_int_equal(notice_of(0), 0);
    assert_int_equal(notice_of(70), 70);
    assert_int_equal(setenv("MUSTER_NOTICE_MS", "500", 1), 0);
    assert_int_equal(notice_of(0), 500);
    assert_int_equal(notice_of(70), 70);
    assert_int_equal(notice_of(-1), 0);
    assert_int_equal(setenv("MUSTER_NOTICE_MS", "soon", 1), 0);
    assert_int_equal(notice_of(0), 0);
}

static int create_with(const char *transport, struct muster_comm **ret)
{
    struct muster_comm_options options = MUSTER_COMM_OPTIONS_INIT;
    options.transport = transport;
    return muster_comm_create(&options, ret, NULL);
}

static void the_transport_of_the_options_wins(void **state)
{
    (void)state;
    struct muster_comm *comm = NULL, *part = NULL;
    assert_int_equal(setenv("MUSTER_TRANSPORT", "pigeon", 1), 0);
    assert_int_equal(create_with(NULL, &comm), MUSTER_ECONFIG);
    assert_int_equal(create_with("auto", &comm), 0);
    assert_int_equal(muster_comm_split(comm, 0, 0, &part, NULL), 0); /* it inherits the options */
    muster_comm_free(part);
    muster_comm_free(comm);
    assert_int_equal(setenv("MUSTER_TRANSPORT", "auto", 1), 0);
    assert_int_equal(create_with("pigeon", &comm), MUSTER_ECONFIG);
}

/* The conformance suites run with each row, so a wrong name is an error, and does not select one of
 * them. */
static void the_environment_chooses_the_row_of_tunings(void **state)
{
    (void)state;
    struct muster_comm *comm = NULL;
    for (int p = 0; p < SCHEDULE_PROCESSORS; p++) {
        const char *name = schedule_tunings[p].name;
        assert_int_equal(setenv("MUSTER_TUNING", name, 1), 0);
        assert_int_equal(create_with(NULL, &comm), 0);
        assert_ptr_equal(comm->tuning, &schedule_tunings[p]);
        assert_non_null(strstr(muster_comm_describe(comm), name));
        muster_comm_free(comm);
    }
    assert_int_equal(setenv("MUSTER_TUNING", "Intel", 1), 0);
    assert_int_equal(create_with(NULL, &comm), MUSTER_ECONFIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(notices_are_printed_only_where_asked_for, forget_environment),
        cmocka_unit_test_setup(the_transport_of_the_options_wins, forget_environment),
        cmocka_unit_test_setup(the_environment_chooses_the_row_of_tunings, forget_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
