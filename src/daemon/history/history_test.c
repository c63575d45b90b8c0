/* The history's numbers, limits and names, with real folders; the choice of the runs to remove,
 * with data only. */
#include "daemon/history/fixture.h"
#include "daemon/history/prune.h"
#include "daemon/history/summary.h"
#include "daemon/history/trim.h"

#include <fcntl.h>
#include <sys/stat.h>

/* ---- Names ---- */

static void what_is_no_name_becomes_no_path(void **state)
{
    struct world *w = *state;
    static const char *const names[] = {"..", ".", "", "a/b", "../x", "A", "a b", ".trash", "a\nb"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *path = NULL;
        struct muster_err err = MUSTER_ERR_INIT;
        const struct history_run as_job = {"default", names[i], 1};
        const struct history_run as_namespace = {names[i], "job", 1};
        assert_int_equal(history_path(&w->home, &as_job, &path, &err), MUSTER_EINVAL);
        assert_int_equal(history_path(&w->home, &as_namespace, &path, &err), MUSTER_EINVAL);
        assert_null(path);
    }
}

/* ---- Numbers ---- */

static void run_once(struct world *w, const char *name)
{
    char uid[64];
    world_add_job(w, name, uid);
    assert_int_equal(world_delete_job(w, name), 0);
    world_wait_gone(w, uid);
}

static void numbers_grow_and_are_not_used_again(void **state)
{
    struct world *w = *state;
    size_t removed = 0;
    run_once(w, "a");
    run_once(w, "a");
    run_once(w, "b");
    assert_true(world_has(w, "history/default/a/2/summary.json"));
    assert_int_equal(world_runs(w, "b"), 1);
    assert_int_equal(history_remove(&w->home, "default", "a", 0, &removed, NULL), 0);
    assert_int_equal(removed, 2);
    assert_int_equal(world_runs(w, "a"), 0);
    assert_int_equal(sweep_next_run(w->sweep, "default", "a"), 3);
    run_once(w, "a");
    assert_true(world_has(w, "history/default/a/3/summary.json"));
}

static void numbers_of_names_without_runs_are_bounded(void **state)
{
    struct world *w = *state;
    size_t removed = 0;
    run_once(w, "a");
    run_once(w, "b");
    run_once(w, "c");
    assert_int_equal(history_remove(&w->home, "default", "a", 0, &removed, NULL), 0);
    assert_int_equal(history_remove(&w->home, "default", "b", 0, &removed, NULL), 0);
    history_forget_names(&w->home, 2);
    assert_int_equal(sweep_next_run(w->sweep, "default", "a"), 2);
    history_forget_names(&w->home, 0);
    assert_int_equal(sweep_next_run(w->sweep, "default", "a"), 1);
    assert_int_equal(sweep_next_run(w->sweep, "default", "b"), 1);
    assert_false(world_has(w, "history/default/a"));
    assert_int_equal(sweep_next_run(w->sweep, "default", "c"), 2);
    assert_int_equal(world_runs(w, "c"), 1);
}

static void an_unfinished_job_is_not_kept(void **state)
{
    struct world *w = *state;
    char uid[64];
    muster_auto(doc) json_t *job = NULL;
    world_add_job(w, "a", uid);
    assert_int_equal(
        store_get(w->store, (struct store_key){"pytorchjobs", "default", "a"}, &job, NULL), 0);
    muster_auto(doc) json_t *running = json_deep_copy(job);
    json_object_del(running, "status");
    assert_int_equal(store_update(w->store, "pytorchjobs", running, STORE_ALL, NULL, NULL), 0);
    assert_int_equal(world_delete_job(w, "a"), 0);
    world_wait_gone(w, uid);
    assert_int_equal(world_runs(w, "a"), 0);
}

static void events_move_into_the_run(void **state)
{
    struct world *w = *state;
    char path[512];
    muster_auto(free) char *text = NULL;
    struct store_page page = {0};
    run_once(w, "a");
    world_path(w, "history/default/a/1/events.json", path);
    assert_int_equal(file_read(path, 65536, &text, NULL, NULL), 0);
    assert_non_null(strstr(text, "it is done"));
    assert_int_equal(store_list(w->store, &(struct store_query){.resource = "events"}, &page, NULL),
                     0);
    assert_int_equal(json_array_size(page.items), 0);
    store_page_done(&page);
}

static bool run_has(const struct world *w, const char *file, const char *text)
{
    char path[512];
    muster_auto(free) char *content = NULL;
    world_path(w, file, path);
    assert_int_equal(file_read(path, 65536, &content, NULL, NULL), 0);
    return strstr(content, text);
}

/* The pod is deleted before its job, perhaps under an earlier controller. */
static void a_job_that_outlives_its_pods_is_kept_with_them(void **state)
{
    struct world *w = *state;
    char uid[64];
    const struct store_key key = {"pytorchjobs", "default", "a"};
    const struct store_delete_options foreground = {.propagation = STORE_FOREGROUND};
    world_add_job(w, "a", uid);
    muster_auto(doc) json_t *slow =
        json_pack("{s:{s:s, s:s, s:[s], s:[{s:s, s:s, s:s, s:b, s:b}]}}", "metadata", "name",
                  "slow", "namespace", "default", "finalizers", "x/y", "ownerReferences", "kind",
                  "PyTorchJob", "name", "a", "uid", uid, "controller", 1, "blockOwnerDeletion", 1);
    muster_auto(doc) json_t *stored = NULL;
    assert_int_equal(store_create(w->store, "pods", slow, NULL, NULL), 0);
    assert_int_equal(store_delete(w->store, key, &foreground, NULL, NULL), 0);
    assert_true(world_has_job(w, "a"));
    world_close(w);
    world_open(w);

    assert_int_equal(
        store_get(w->store, (struct store_key){"pods", "default", "slow"}, &stored, NULL), 0);
    muster_auto(doc) json_t *freed = json_deep_copy(stored);
    json_object_del(json_object_get(freed, "metadata"), "finalizers");
    assert_int_equal(store_update(w->store, "pods", freed, STORE_ALL, NULL, NULL), 0);
    assert_false(world_has_job(w, "a"));
    world_wait_gone(w, uid);
    assert_int_equal(world_runs(w, "a"), 1);
    assert_true(run_has(w, "history/default/a/1/pods.json", "\"Succeeded\""));
}

/* ---- Limits ---- */

static void the_oldest_parts_of_a_huge_log_go(void **state)
{
    struct world *w = *state;
    char path[512];
    struct history_size size = {0};
    for (int i = 0; i < 6; i++) {
        char rest[64], bytes[1001];
        memset(bytes, 'x', 1000);
        bytes[1000] = '\0';
        snprintf(rest, sizeof rest, "logs/pod/pytorch/0/%d.log", i);
        world_write(w, rest, bytes);
        world_path(w, rest, path);
        const struct timespec times[2] = {{.tv_sec = 1000 + i}, {.tv_sec = 1000 + i}};
        assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    }
    world_write(w, "logs/pod/pytorch/0/exit.json", "{}");
    world_write(w, "logs/pod/pytorch/0/spec.json", "{\"env\":{\"TOKEN\":\"secret\"}}");
    world_path(w, "logs", path);
    assert_int_equal(history_trim(path, 2500, &size, NULL), 0);
    assert_int_equal(size.bytes, 2002);
    assert_int_equal(size.dropped, 4000);
    assert_true(world_has(w, "logs/pod/pytorch/0/5.log"));
    assert_true(world_has(w, "logs/pod/pytorch/0/4.log"));
    assert_false(world_has(w, "logs/pod/pytorch/0/3.log"));
    assert_false(world_has(w, "logs/pod/pytorch/0/spec.json"));
    assert_int_equal(history_trim(path, 0, &size, NULL), 0);
    assert_int_equal(size.bytes, 2);
    world_path(w, "nowhere", path);
    assert_int_equal(history_trim(path, 0, &size, NULL), 0);
    assert_int_equal(size.bytes, 0);
}

static void the_oldest_runs_go(void **state)
{
    (void)state;
    char ns[] = "default", a[] = "a", b[] = "b";
    struct history_item items[] = {
        {ns, a, 1, 100, 10, false},
        {ns, b, 1, 150, 10, false},
        {ns, a, 2, 200, 10, false},
        {ns, a, 3, 50, 10, false}, /* the clock was set back */
    };
    const struct history_limits by_name = {2, 100, 1000}, by_count = {10, 2, 1000},
                                by_bytes = {10, 100, 25}, none = {0, 0, 0};
    const struct {
        const struct history_limits *limits;
        int64_t go_a1, go_b1, go_a2, go_a3;
    } cases[] = {{&by_name, 1, 0, 0, 0},
                 {&by_count, 1, 0, 0, 1},
                 {&by_bytes, 1, 0, 0, 1},
                 {&none, 1, 1, 1, 1}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        history_choose(items, 4, cases[c].limits);
        for (size_t i = 0; i < 4; i++) {
            const struct history_item *at = &items[i];
            int64_t goes = at->name == b  ? cases[c].go_b1
                           : at->run == 1 ? cases[c].go_a1
                           : at->run == 2 ? cases[c].go_a2
                                          : cases[c].go_a3;
            assert_int_equal(at->goes, goes);
        }
    }
}

/* ---- Summaries ---- */

static void a_summary_says_how_it_ended(void **state)
{
    (void)state;
    static const char job_text[] =
        "{\"kind\":\"PyTorchJob\",\"metadata\":{\"name\":\"j\",\"namespace\":\"default\"},\"spec\":{"
        "\"pytorchReplicaSpecs\":{\"Master\":{\"template\":{\"spec\":{\"containers\":[{\"name\":"
        "\"pytorch\",\"command\":[\"sh\",\"-c\",\"echo $$(date) it's\"]}]}}}}},\"status\":{"
        "\"startTime\":\"2026-01-01T00:00:00Z\",\"completionTime\":\"2026-01-01T00:01:02Z\","
        "\"conditions\":[{\"type\":\"Failed\",\"status\":\"True\",\"reason\":\"PyTorchJobFailed\","
        "\"message\":\"active longer than specified deadline\"}]}}";
    muster_auto(doc) json_t *job = NULL;
    muster_auto(doc) json_t *pods = json_array();
    assert_int_equal(doc_parse(job_text, strlen(job_text), &job, NULL), 0);
    muster_auto(doc) json_t *summary = history_summary(job, pods, 7, 0);
    assert_int_equal(doc_int(summary, "run", 0), 7);
    assert_string_equal(doc_text(summary, "state", ""), "Failed");
    assert_int_equal(doc_int(summary, "exitCode", 0), 124);
    assert_int_equal(doc_int(summary, "durationMs", 0), 62000);
    assert_string_equal(doc_text(summary, "command", ""), "sh -c 'echo $(date) it'\\''s'");
}

static void ranks_that_were_made_anew_count_once(void **state)
{
    (void)state;
    static const char text[] = "[{\"metadata\":{\"name\":\"j-master-0\",\"uid\":\"1\"}},"
                               "{\"metadata\":{\"name\":\"j-worker-0\",\"uid\":\"2\"}},"
                               "{\"metadata\":{\"name\":\"j-master-0\",\"uid\":\"3\"}}]";
    muster_auto(doc) json_t *job = json_object();
    muster_auto(doc) json_t *pods = NULL;
    assert_int_equal(doc_parse(text, strlen(text), &pods, NULL), 0);
    muster_auto(doc) json_t *summary = history_summary(job, pods, 1, 0);
    assert_int_equal(doc_int(summary, "ranks", 0), 2);
    assert_int_equal(json_array_size(doc_at(summary, "replicas")), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_no_name_becomes_no_path, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(numbers_grow_and_are_not_used_again, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(numbers_of_names_without_runs_are_bounded, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(an_unfinished_job_is_not_kept, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(a_job_that_outlives_its_pods_is_kept_with_them,
                                        world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(events_move_into_the_run, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(the_oldest_parts_of_a_huge_log_go, world_set_up,
                                        world_tear_down),
        cmocka_unit_test(the_oldest_runs_go),
        cmocka_unit_test(a_summary_says_how_it_ended),
        cmocka_unit_test(ranks_that_were_made_anew_count_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
