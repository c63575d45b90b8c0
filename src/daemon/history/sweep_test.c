/* The folder of a deleted job is removed when its job, its pods, its processes and its reader are
 * gone; a new controller removes the marked folders only. */
#include "daemon/history/fixture.h"

#include <fcntl.h>
#include <sys/file.h>

enum { LOOKS = 5 };

static bool is_there(const struct world *w, const char *uid)
{
    char path[128];
    snprintf(path, sizeof path, "jobs/%s", uid);
    return world_has(w, path);
}

/* Lets the sweep look, and lets its work end: the folder must still exist. */
static void look_in_vain(struct world *w, const char *uid)
{
    for (int i = 0; i < LOOKS; i++) {
        sweep_look(w->sweep);
        uv_run(&w->loop, UV_RUN_ONCE);
    }
    assert_true(is_there(w, uid));
}

static void a_folder_stays_with_its_job(void **state)
{
    struct world *w = *state;
    char uid[64];
    world_add_job(w, "a", uid);
    look_in_vain(w, uid);
}

static void it_stays_while_a_process_holds_its_lock(void **state)
{
    struct world *w = *state;
    char uid[64], rest[128], path[512];
    world_add_job(w, "a", uid);
    snprintf(rest, sizeof rest, "jobs/%s/lock", uid);
    world_write(w, rest, "");
    world_path(w, rest, path);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    assert_int_equal(world_delete_job(w, "a"), 0);
    look_in_vain(w, uid);
    assert_int_equal(close(fd), 0);
    world_wait_gone(w, uid);
    assert_int_equal(world_runs(w, "a"), 1);
}

static void it_stays_while_a_pod_of_it_is_in_the_store(void **state)
{
    struct world *w = *state;
    const struct store_delete_options orphan = {.grace_s = 0, .propagation = STORE_ORPHAN};
    char uid[64];
    world_add_job(w, "a", uid);
    muster_auto(doc) json_t *late =
        json_pack("{s:{s:s, s:s, s:[{s:s, s:s, s:s, s:b}]}}", "metadata", "name", "late",
                  "namespace", "default", "ownerReferences", "kind", "PyTorchJob", "name", "a",
                  "uid", uid, "controller", 1);
    assert_int_equal(store_delete(w->store, (struct store_key){"pytorchjobs", "default", "a"},
                                  &orphan, NULL, NULL),
                     0);
    assert_int_equal(store_create(w->store, "pods", late, NULL, NULL), 0);
    look_in_vain(w, uid);
    assert_int_equal(
        store_delete(w->store, (struct store_key){"pods", "default", "late"}, NULL, NULL, NULL), 0);
    world_wait_gone(w, uid);
}

/* A pod without a job has a folder named by its own uid. */
static void a_lone_pods_folder_goes_with_it(void **state)
{
    struct world *w = *state;
    char path[128];
    muster_auto(doc) json_t *stored = NULL;
    muster_auto(doc) json_t *pod =
        json_pack("{s:{s:s, s:s}}", "metadata", "name", "alone", "namespace", "default");
    assert_int_equal(store_create(w->store, "pods", pod, &stored, NULL), 0);
    const char *uid = doc_text(stored, "metadata.uid", "");
    snprintf(path, sizeof path, "jobs/%s/supervisor.log", uid);
    world_write(w, path, "");
    look_in_vain(w, uid);
    assert_int_equal(
        store_delete(w->store, (struct store_key){"pods", "default", "alone"}, NULL, NULL, NULL),
        0);
    world_wait_gone(w, uid);
}

static void a_new_controller_removes_what_was_marked_and_nothing_else(void **state)
{
    struct world *w = *state;
    char uid[64];
    world_add_job(w, "a", uid);
    world_write(w, "jobs/marked/deleted", "");
    world_write(w, "jobs/unknown/supervisor.log", ""); /* from a store that was moved away */
    world_close(w);
    world_open(w);
    world_wait_gone(w, "marked");
    assert_true(is_there(w, "unknown"));
    assert_true(is_there(w, uid));
}

/* `muster run` may still be reading the logs of its job. */
static void it_stays_while_its_run_is_connected(void **state)
{
    struct world *w = *state;
    world_write(w, "jobs/read/deleted", "run-1-a");
    leases_opened(w->leases, "run-1-a");
    world_close(w);
    world_open(w);
    leases_opened(w->leases, "run-1-a");
    look_in_vain(w, "read");
    leases_closed(w->leases, "run-1-a");
    world_wait_gone(w, "read");
}

static void one_that_is_being_archived_is_told_as_pending(void **state)
{
    struct world *w = *state;
    char uid[64];
    world_add_job(w, "a", uid);
    assert_int_equal(sweep_next_run(w->sweep, "default", "a"), 1);
    assert_int_equal(world_delete_job(w, "a"), 0);
    uv_run(&w->loop, UV_RUN_NOWAIT);
    muster_auto(doc) json_t *pending = sweep_pending(w->sweep, "default", "a");
    muster_auto(doc) json_t *others = sweep_pending(w->sweep, "default", "b");
    assert_int_equal(json_array_size(pending), 1);
    assert_int_equal(json_array_size(others), 0);
    assert_int_equal(sweep_next_run(w->sweep, "default", "a"), 2);
    world_wait_gone(w, uid);
    muster_auto(doc) json_t *none = sweep_pending(w->sweep, NULL, NULL);
    assert_int_equal(json_array_size(none), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_folder_stays_with_its_job),
        TEST(it_stays_while_a_process_holds_its_lock),
        TEST(it_stays_while_a_pod_of_it_is_in_the_store),
        TEST(a_lone_pods_folder_goes_with_it),
        TEST(a_new_controller_removes_what_was_marked_and_nothing_else),
        TEST(it_stays_while_its_run_is_connected),
        TEST(one_that_is_being_archived_is_told_as_pending),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
