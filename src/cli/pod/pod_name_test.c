/* Checks that a job's name is found from the name of a pod. */
#include "base/testing/test.h"
#include "cli/pod/pod_name.h"

#include <stdlib.h>

static void the_job_of_a_pods_name(void **state)
{
    (void)state;
    static const char *const table[][2] = {
        {"mnist-master-0", "mnist"},
        {"mnist-worker-12", "mnist"},
        {"a-worker-b-worker-1", "a-worker-b"},
        {"elasticdl-test-mnist-master", "test-mnist"},
        {"test-mnist-edljob-worker-0", "test-mnist"},
        {"elasticdl-x-master-0", "elasticdl-x"}, /* the job has this name */
        {"elasticdl--master", NULL},
        {"elasticdl-master", NULL},
        {"-worker-0", NULL},
        {"mnist", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char *job = pod_name_job(table[i][0]);
        if (table[i][1]) {
            assert_non_null(job);
            assert_string_equal(job, table[i][1]);
        } else {
            assert_null(job);
        }
        free(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_job_of_a_pods_name)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
