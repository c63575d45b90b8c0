/* What a rank may see of the submitter's environment. */
#include "base/test.h"
#include "job/submit.h"

static void strays_stay_out(void **state)
{
    (void)state;
    char *environment[] = {"PATH=/bin",
                           "LC_ALL=C",
                           "CONDA_PREFIX=/c",
                           "VIRTUAL_ENV=/v",
                           "MASTER_PORT=1",
                           "RANK=3",
                           "MASTER_ADDR=h",
                           "WORLD_SIZE=2",
                           "AWS_SECRET_ACCESS_KEY=x",
                           "LC_=odd",
                           "noequals",
                           "PATHX=1",
                           NULL};
    json_t *captured = submit_capture(environment);
    assert_string_equal(json_string_value(json_object_get(captured, "PATH")), "/bin");
    assert_string_equal(json_string_value(json_object_get(captured, "LC_ALL")), "C");
    assert_string_equal(json_string_value(json_object_get(captured, "CONDA_PREFIX")), "/c");
    assert_string_equal(json_string_value(json_object_get(captured, "VIRTUAL_ENV")), "/v");
    assert_int_equal(json_object_size(captured), 4);
    json_decref(captured);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(strays_stay_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
