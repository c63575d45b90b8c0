/* Which pod gets which GPU, and the message when there are not enough. */
#include "base/file.h"
#include "base/testing/test.h"
#include "base/testing/test_folder.h"
#include "process/machine/gpus.h"

static void each_pod_gets_its_own(void **state)
{
    (void)state;
    struct gpus gpus;
    struct muster_err err = MUSTER_ERR_INIT;
    char ids[64];
    gpus_discover(&gpus, "/nonexistent", "0,1,2");
    assert_int_equal(gpus.count, 3);
    assert_int_equal(gpus_take(&gpus, 2, false, NULL, ids, sizeof ids, &err), 0);
    assert_string_equal(ids, "0,1");
    assert_int_equal(gpus_take(&gpus, 2, false, NULL, ids, sizeof ids, &err), MUSTER_EAGAIN);
    assert_int_equal(gpus_take(&gpus, 4, false, NULL, ids, sizeof ids, &err), MUSTER_EINVAL);
    assert_string_equal(err.text, "needs 4 GPUs, this machine has 3");
    gpus_give_back(&gpus, "0,1");
    assert_int_equal(gpus_take(&gpus, 3, false, NULL, ids, sizeof ids, &err), 0);
}

static void sharing_spreads_over_the_least_held(void **state)
{
    (void)state;
    struct gpus gpus;
    char ids[64];
    gpus_discover(&gpus, "/nonexistent", "0,1");
    assert_int_equal(gpus_take(&gpus, 1, true, NULL, ids, sizeof ids, NULL), 0);
    assert_string_equal(ids, "0");
    assert_int_equal(gpus_take(&gpus, 1, true, NULL, ids, sizeof ids, NULL), 0);
    assert_string_equal(ids, "1");
    assert_int_equal(gpus_take(&gpus, 1, true, NULL, ids, sizeof ids, NULL), 0);
    assert_string_equal(ids, "0");
    assert_int_equal(gpus_take(&gpus, 1, false, NULL, ids, sizeof ids, NULL), MUSTER_EAGAIN);
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

/* Compares the pool for a value of the variable, as CUDA reads it: "x" for each GPU of the pool,
 * "." for the others. */
static void expect_pool(const struct gpus *gpus, const char *visible, const char *expected)
{
    bool pool[GPUS_MAX];
    char found[GPUS_MAX + 1] = "";
    size_t count = gpus_pool(gpus, visible, pool);
    for (size_t i = 0; i < gpus->count; i++) {
        found[i] = pool[i] ? 'x' : '.';
        count -= pool[i];
    }
    if (strcmp(found, expected) != 0 || count != 0) {
        fail_msg("%s: %s, not %s", visible ? visible : "(not set)", found, expected);
    }
}

static void write_driver_entry(const char *root, const char *bus, const char *uuid)
{
    char path[512], text[256];
    (void)snprintf(path, sizeof path, "%s/proc/driver/nvidia/gpus/%s", root, bus);
    assert_int_equal(file_mkdir(path, 0700, NULL), 0);
    (void)snprintf(path, sizeof path, "%s/proc/driver/nvidia/gpus/%s/information", root, bus);
    int length = snprintf(
        text, sizeof text,
        "Model: \t\t Some GPU\nIRQ:   \t\t 16\nGPU UUID: \t %s\nDevice Minor: \t 0\n", uuid);
    assert_int_equal(file_write(path, text, (size_t)length, 0600, NULL), 0);
}

static void a_shell_limits_the_pool(void **state)
{
    (void)state;
    char root[TEST_FOLDER_BYTES];
    struct gpus gpus;
    test_folder_make(root);
    write_driver_entry(root, "0000:81:00.0", "GPU-ab12cd34-0002");
    write_driver_entry(root, "0000:01:00.0", "GPU-8f55aaaa-0000");
    write_driver_entry(root, "0000:41:00.0", "GPU-8f99bbbb-0001");
    gpus_discover(&gpus, root, NULL);
    static const struct {
        const char *visible, *pool;
    } table[] = {
        {NULL, "xxx"},
        {"", "..."},
        {"1", ".x."},
        {"2,0", "x.x"},
        {" 2, 0 ", "x.x"},
        {"0,-1,2", "x.."},
        {"-1", "..."},
        {"NoDevFiles", "..."},
        {"0,NoDevFiles", "x.."},
        {"0,3,1", "x.."},
        {"1,1", "..."},
        {"0,1,0", "..."},
        {"1x,2", ".xx"},
        {"GPU-ab12", "..x"},
        {"GPU-ab12cd34-0002,GPU-8f5", "x.x"},
        {"GPU-8f", "..."},
        {"GPU-8f5,GPU-0", "x.."},
        {"GPU-8f5,1", "x.."},
        {"0,GPU-ab12", "x.."},
        {"MIG-1", "..."},
        {"GPU-8f5,GPU-8f55", "..."},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        expect_pool(&gpus, table[i].visible, table[i].pool);
    }
    gpus_discover(&gpus, root, "1,2"); /* the GPUs that this controller may give out */
    expect_pool(&gpus, "0,1", "x.");
    expect_pool(&gpus, "GPU-ab", ".x");
    gpus_discover(&gpus, root, "GPU-8f99bbbb-0001,GPU-8f55aaaa-0000");
    expect_pool(&gpus, "0", ".x");
    expect_pool(&gpus, "GPU-8f9", "x.");
    expect_pool(&gpus, "GPU-8f", "..");
    gpus_discover(&gpus, "/nonexistent", "MIG-a,MIG-b");
    expect_pool(&gpus, "MIG-b", ".x");
    test_folder_remove(root);
}

static void only_the_pool_is_given_out(void **state)
{
    (void)state;
    struct gpus gpus;
    bool pool[GPUS_MAX];
    char ids[64];
    gpus_discover(&gpus, "/nonexistent", "0,1,2");
    assert_int_equal(gpus_pool(&gpus, "2,1", pool), 2);
    assert_int_equal(gpus_take(&gpus, 2, false, pool, ids, sizeof ids, NULL), 0);
    assert_string_equal(ids, "1,2");
    assert_int_equal(gpus_take(&gpus, 1, false, pool, ids, sizeof ids, NULL), MUSTER_EAGAIN);
    assert_int_equal(gpus_take(&gpus, 1, false, NULL, ids, sizeof ids, NULL), 0);
    assert_string_equal(ids, "0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_pod_gets_its_own),
        cmocka_unit_test(sharing_spreads_over_the_least_held),
        cmocka_unit_test(no_driver_means_none),
        cmocka_unit_test(a_shell_limits_the_pool),
        cmocka_unit_test(only_the_pool_is_given_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
