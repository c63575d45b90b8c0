/* A placement survives the controller, and no port is leased twice. */
#include "base/cleanup.h"
#include "base/file.h"
#include "base/testing/test.h"
#include "base/testing/test_folder.h"
#include "daemon/machine/placement.h"

#include <unistd.h>

/* How often fsync was called; the function below replaces libc's. */
static int synced;

int fsync(int fd)
{
    (void)fd;
    synced++;
    return 0;
}

static bool nobody(void *data, int port)
{
    (void)data;
    (void)port;
    return false;
}

static bool held_by_other(void *data, int port)
{
    return placement_holds(data, port);
}

static void what_was_leased_is_there_after_a_restart(void **state)
{
    const char *folder = *state;
    struct placement first, again;
    int port = 0, same = 0, other = 0;
    assert_int_equal(placement_open(&first, folder, NULL), 0);
    assert_int_equal(placement_port(&first, "master", nobody, NULL, &port, NULL), 0);
    assert_in_range(port, 20000, 32767);
    assert_int_equal(placement_set_gpus(&first, "pod-1", "0,1", NULL), 0);

    assert_int_equal(placement_open(&again, folder, NULL), 0);
    assert_int_equal(placement_port(&again, "master", nobody, NULL, &same, NULL), 0);
    assert_int_equal(same, port);
    assert_int_equal(placement_port(&again, "rdzv", held_by_other, &first, &other, NULL), 0);
    assert_int_not_equal(other, port);
    assert_string_equal(placement_gpus(&again, "pod-1"), "0,1");
    assert_null(placement_gpus(&again, "pod-2"));
    placement_done(&first);
    placement_done(&again);
}

/* The controller's loop must not wait for a slow disk. */
static void what_is_leased_does_not_wait_for_the_disk(void **state)
{
    struct placement p;
    int port = 0;
    synced = 0;
    assert_int_equal(placement_open(&p, *state, NULL), 0);
    assert_int_equal(placement_port(&p, "master", nobody, NULL, &port, NULL), 0);
    assert_int_equal(placement_set_gpus(&p, "pod-1", "0,1", NULL), 0);
    placement_done(&p);
    assert_int_equal(synced, 0);
}

/* A power cut may leave a file empty that was not synced; no process of the job runs after it. */
static void an_empty_file_holds_nothing(void **state)
{
    const char *folder = *state;
    muster_auto(free) char *path = file_join(folder, "placement.json");
    assert_int_equal(file_put(path, "", 0, 0600, NULL), 0);
    struct placement p;
    assert_int_equal(placement_open(&p, folder, NULL), 0);
    assert_null(placement_gpus(&p, "pod-1"));
    placement_done(&p);
}

static void a_torn_file_is_said(void **state)
{
    const char *folder = *state;
    muster_auto(free) char *path = file_join(folder, "placement.json");
    assert_int_equal(file_write(path, "{\"ports\":", 9, 0600, NULL), 0);
    struct placement p;
    struct muster_err err = MUSTER_ERR_INIT;
    assert_int_equal(placement_open(&p, folder, &err), MUSTER_EDATA);
}

/* This includes valid JSON that is not a placement. */
static void a_damaged_file_is_refused(void **state)
{
    static const char *const texts[] = {
        "[]",
        "3",
        "{\"ports\": []}",
        "{\"ports\": {\"a\": \"b\"}}",
        "{\"ports\": {\"a\": 65536}}",
        "{\"gpus\": 1}",
        "{\"gpus\": {\"a\": 1}}",
        "{",
    };
    (void)state;
    char folder[TEST_FOLDER_BYTES];
    test_folder_make(folder);
    muster_auto(free) char *path = file_join(folder, "placement.json");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct placement p;
        struct muster_err err = MUSTER_ERR_INIT;
        assert_int_equal(file_write(path, texts[i], strlen(texts[i]), 0600, NULL), 0);
        if (placement_open(&p, folder, &err) != MUSTER_EDATA) {
            fail_msg("\"%s\" was taken", texts[i]);
        }
        assert_true(err.text[0]);
    }
    test_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_damaged_file_is_refused),
        cmocka_unit_test_setup_teardown(what_was_leased_is_there_after_a_restart,
                                        test_folder_set_up, test_folder_tear_down),
        cmocka_unit_test_setup_teardown(what_is_leased_does_not_wait_for_the_disk,
                                        test_folder_set_up, test_folder_tear_down),
        cmocka_unit_test_setup_teardown(an_empty_file_holds_nothing, test_folder_set_up,
                                        test_folder_tear_down),
        cmocka_unit_test_setup_teardown(a_torn_file_is_said, test_folder_set_up,
                                        test_folder_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
