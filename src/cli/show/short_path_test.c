/* Checks that paths are shortened as people write them. */
#include "cli/show/short_path.h"

#include "base/testing/test.h"

static void a_path_is_told_from_here_or_from_home(void **state)
{
    (void)state;
    static const struct {
        const char *path, *cwd, *home, *told;
    } cases[] = {
        {"/home/ann/run/out", "/home/ann/run", "/home/ann", "out"},
        {"/home/ann/run/out/x", "/home/ann", NULL, "run/out/x"},
        {"/home/ann/.local/state", "/tmp", "/home/ann", "~/.local/state"},
        {"/home/annabel/x", "/tmp", "/home/ann", "/home/annabel/x"},
        {"/home/ann", "/home/ann", "/home/ann", "/home/ann"},
        {"/data", "/", "/", "/data"},
        {"/data", NULL, NULL, "/data"},
        {"out", "/home/ann", "/home/ann", "out"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char told[SHORT_PATH_BYTES];
        assert_string_equal(short_path_from(cases[i].path, cases[i].cwd, cases[i].home, told),
                            cases[i].told);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_is_told_from_here_or_from_home),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
