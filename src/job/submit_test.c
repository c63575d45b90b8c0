/* What a rank may see of the submitter's environment. */
#include "base/test.h"
#include "job/submit.h"

static void strays_stay_out(void **state)
{
    (void)state;
    char *environment[] = {"PATH=/bin",
                           "LC_ALL=C",
                           "CONDA_PREFIX=/c",
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
    assert_int_equal(json_object_size(captured), 3);
    json_decref(captured);
    assert_true(submit_allows("VIRTUAL_ENV"));
    assert_false(submit_allows("MASTER_PORT"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(strays_stay_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
