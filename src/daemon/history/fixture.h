/* A finished job with a log, an event and a pod in a store and a home of its own, for the tests of
 * the history.
 *
 * Layer: program (daemon), tests only.
 */
#pragma once

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/testing/test.h"
#include "base/testing/test_folder.h"
#include "base/testing/test_wait.h"
#include "base/time/clock.h"
#include "daemon/history/paths.h"
#include "daemon/history/sweep.h"
#include "daemon/object/events.h"

struct world {
    char folder[TEST_FOLDER_BYTES];
    struct home home;
    uv_loop_t loop;
    uv_timer_t tick; /* keeps the loop turning */
    struct store *store;
    struct leases *leases;
    struct sweep *sweep;
};

static const char world_log[] = "what it printed\n";

static inline void world_path(const struct world *w, const char *rest, char ret[512])
{
    assert_true(snprintf(ret, 512, "%s/%s", w->folder, rest) < 512);
}

static inline void world_write(const struct world *w, const char *rest, const char *text)
{
    char path[512];
    world_path(w, rest, path);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    assert_int_equal(file_mkdir(path, 0700, NULL), 0);
    *slash = '/';
    assert_int_equal(file_write(path, text, strlen(text), 0600, NULL), 0);
}

static inline bool world_has(const struct world *w, const char *rest)
{
    char path[512];
    world_path(w, rest, path);
    return file_exists(path);
}

static inline void world_tick(uv_timer_t *timer)
{
    (void)timer;
}

static inline void world_open_store(struct world *w)
{
    char path[512];
    world_path(w, "store.db", path);
    w->home.path = w->folder;
    assert_int_equal(store_open(path, NULL, &w->store, NULL), 0);
}

/* Opens the parts as the controller does. */
static inline void world_open(struct world *w)
{
    uv_loop_init(&w->loop);
    uv_timer_init(&w->loop, &w->tick);
    uv_timer_start(&w->tick, world_tick, 1, 1);
    world_open_store(w);
    assert_int_equal(leases_new(&w->loop, w->store, &w->leases, NULL), 0);
    assert_int_equal(sweep_new(&w->loop, w->store, &w->home, w->leases, &w->sweep, NULL), 0);
}

static inline void world_close(struct world *w)
{
    sweep_free(w->sweep);
    leases_free(w->leases);
    uv_close((uv_handle_t *)&w->tick, NULL);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    store_close(w->store);
    assert_int_equal(uv_loop_close(&w->loop), 0);
}

/* Adds a finished job with a folder, whose name is the job's uid; the uid is written to
 * `ret_uid`. */
static inline void world_add_job(struct world *w, const char *name, char ret_uid[64])
{
    char text[1024], path[512];
    muster_auto(doc) json_t *job = NULL;
    muster_auto(doc) json_t *stored = NULL;
    assert_true(
        snprintf(text, sizeof text,
                 "{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"PyTorchJob\",\"metadata\":{"
                 "\"name\":\"%s\",\"namespace\":\"default\"},\"status\":{\"startTime\":"
                 "\"2026-01-01T00:00:00Z\",\"completionTime\":\"2026-01-01T00:01:00Z\","
                 "\"conditions\":[{\"type\":\"Succeeded\",\"status\":\"True\"}]}}",
                 name) < (int)sizeof text);
    assert_int_equal(doc_parse(text, strlen(text), &job, NULL), 0);
    assert_int_equal(store_create(w->store, "pytorchjobs", job, &stored, NULL), 0);
    assert_true(snprintf(ret_uid, 64, "%s", doc_text(stored, "metadata.uid", "")) < 64);
    muster_auto(doc) json_t *pod =
        json_pack("{s:{s:s, s:s, s:[{s:s, s:s, s:s, s:b}]}, s:{s:s}}", "metadata", "name",
                  "j-master-0", "namespace", "default", "ownerReferences", "kind", "PyTorchJob",
                  "name", name, "uid", ret_uid, "controller", 1, "status", "phase", "Succeeded");
    assert_int_equal(doc_set_text(pod, "metadata.name", name), 0);
    assert_int_equal(store_create(w->store, "pods", pod, NULL, NULL), 0);
    const struct event_note note = {stored, "test", false, "Done", "it is done", clock_unix_ms()};
    assert_int_equal(event_record(w->store, &note, NULL), 0);
    static const char *const files[] = {"0.log", "exit.json", "started.json", "spec.json"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(path, sizeof path, "jobs/%s/containers/pod/pytorch/0/%s", ret_uid, files[i]);
        world_write(w, path, i == 0 ? world_log : "{}");
    }
}

static inline int world_delete_job(struct world *w, const char *name)
{
    const struct store_key key = {"pytorchjobs", "default", name};
    return store_delete(w->store, key, NULL, NULL, NULL);
}

static inline bool world_has_job(struct world *w, const char *name)
{
    muster_auto(doc) json_t *job = NULL;
    return store_get(w->store, (struct store_key){"pytorchjobs", "default", name}, &job, NULL) == 0;
}

/* Turns the loop until the folder of the job is gone. */
static inline void world_wait_gone(struct world *w, const char *uid)
{
    char path[128];
    snprintf(path, sizeof path, "jobs/%s", uid);
    int64_t until_ms = clock_ms() + test_limit_ms();
    while (world_has(w, path)) {
        assert_true(clock_ms() < until_ms);
        sweep_look(w->sweep);
        uv_run(&w->loop, UV_RUN_ONCE);
    }
}

static inline void world_count(void *arg, const struct history_run *run, const char *folder)
{
    int *count = arg;
    (void)run;
    (void)folder;
    ++*count;
}

static inline int world_runs(const struct world *w, const char *name)
{
    int count = 0;
    history_each(&w->home, "default", name, world_count, &count);
    return count;
}

/* Makes a world with a folder of its own in *state. */
static inline int world_set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    test_folder_make(w->folder);
    world_open(w);
    *state = w;
    return 0;
}

static inline int world_tear_down(void **state)
{
    struct world *w = *state;
    world_close(w);
    test_folder_remove(w->folder);
    free(w);
    return 0;
}
