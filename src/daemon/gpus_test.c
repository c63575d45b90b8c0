/* Who gets which GPU, and what is said when there are not enough. */
#include "base/test.h"
#include "daemon/gpus.h"

static void each_pod_gets_its_own(void **state)
{
    (void)state;
    struct gpus gpus;
    struct muster_err err = {0};
    char ids[64];
    gpus_discover(&gpus, "/nonexistent", "0,1,2");
    assert_int_equal(gpus.count, 3);
    assert_int_equal(gpus_take(&gpus, 2, false, ids, sizeof ids, &err), 0);
    assert_string_equal(ids, "0,1");
    assert_int_equal(gpus_take(&gpus, 2, false, ids, sizeof ids, &err), MUSTER_EAGAIN);
    assert_int_equal(gpus_take(&gpus, 4, false, ids, sizeof ids, &err), MUSTER_EINVAL);
    assert_string_equal(err.text, "4 GPUs wanted, this machine has 3");
    gpus_give_back(&gpus, "0,1");
    assert_int_equal(gpus_take(&gpus, 3, false, ids, sizeof ids, &err), 0);
}

static void sharing_spreads_over_the_least_held(void **state)
{
    (void)state;
    struct gpus gpus;
    char ids[64];
    gpus_discover(&gpus, "/nonexistent", "0,1");
    assert_int_equal(gpus_take(&gpus, 1, true, ids, sizeof ids, NULL), 0);
    assert_string_equal(ids, "0");
    assert_int_equal(gpus_take(&gpus, 1, true, ids, sizeof ids, NULL), 0);
    assert_string_equal(ids, "1");
    assert_int_equal(gpus_take(&gpus, 1, true, ids, sizeof ids, NULL), 0);
    assert_string_equal(ids, "0");
    assert_int_equal(gpus_take(&gpus, 1, false, ids, sizeof ids, NULL), MUSTER_EAGAIN);
}

static void no_driver_means_none(void **state)
{
    (void)state;
    struct gpus gpus;
    gpus_discover(&gpus, "/nonexistent", NULL);
    assert_int_equal(gpus.count, 0);
    gpus_discover(&gpus, "/nonexistent", "none");
    assert_int_equal(gpus.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_pod_gets_its_own),
        cmocka_unit_test(sharing_spreads_over_the_least_held),
        cmocka_unit_test(no_driver_means_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
