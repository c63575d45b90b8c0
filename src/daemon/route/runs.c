/* See runs.h. */
#include "daemon/route/runs.h"

#include "api/api.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/file.h"
#include "base/time/clock.h"
#include "daemon/history/archive.h"
#include "daemon/history/deleted_pods.h"
#include "daemon/history/paths.h"
#include "daemon/history/summary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES_MAX = 256 << 20 };

static json_t *read_file(const char *folder, const char *name)
{
    muster_auto(free) char *path = file_join(folder, name);
    muster_auto(free) char *text = NULL;
    size_t bytes = 0;
    json_t *doc = NULL;
    if (!path || file_read(path, FILE_BYTES_MAX, &text, &bytes, NULL) < 0 ||
        doc_parse(text, bytes, &doc, NULL) < 0) {
        return NULL;
    }
    return doc;
}

static void add_summary(json_t *runs, json_t *summary, bool current)
{
    if (summary) {
        json_object_set_new(summary, "current", json_boolean(current));
        json_array_append_new(runs, summary);
    }
}

/* Adds an archived run. If it cannot be read (a power cut, a bad disk), only its names and number
 * are listed. */
static void add_archived(void *arg, const struct history_run *run, const char *folder)
{
    json_t *summary = read_file(folder, "summary.json");
    add_summary(arg,
                summary ? summary
                        : json_pack("{s:s, s:s, s:I, s:s}", "namespace", run->namespace, "name",
                                    run->name, "run", (json_int_t)run->run, "state", "Unreadable"),
                false);
}

static void add_pending(const struct run_places *places, const char *namespace, const char *name,
                        json_t *runs)
{
    muster_auto(doc) json_t *list = sweep_pending(places->sweep, namespace, name);
    size_t i;
    json_t *record;
    json_array_foreach (list, i, record) {
        add_summary(runs,
                    history_summary(doc_at(record, "job"), doc_at(record, "pods"),
                                    doc_int(record, "run", 1), clock_unix_ms()),
                    false);
    }
}

static void add_by_name(json_t *by_name, const json_t *pods)
{
    size_t i;
    json_t *pod;
    json_array_foreach (pods, i, pod) {
        json_object_set(by_name, doc_text(pod, "metadata.name", ""), pod);
    }
}

/* Lists the newest pod of each name: the one that exists, or else the last deleted one. */
static int list_pods(const struct run_places *places, const json_t *job, json_t **ret,
                     struct muster_err *err)
{
    const char *uid = doc_text(job, "metadata.uid", "");
    const struct store_query query = {
        .resource = "pods", .namespace = doc_text(job, "metadata.namespace", ""), .owner_uid = uid};
    struct store_page page = {0};
    muster_auto(doc) json_t *by_name = json_object();
    muster_auto(doc) json_t *kept = deleted_pods_list(places->home, uid);
    int r = store_list(places->store, &query, &page, err);
    if (r < 0) {
        return r;
    }
    add_by_name(by_name, kept);
    add_by_name(by_name, page.items);
    store_page_done(&page);
    *ret = json_array();
    const char *name;
    json_t *pod;
    json_object_foreach (by_name, name, pod) {
        json_array_append(*ret, pod);
    }
    return 0;
}

static json_t *summary_of(const struct run_places *places, const json_t *job, const json_t *pods)
{
    int64_t run = sweep_next_run(places->sweep, doc_text(job, "metadata.namespace", ""),
                                 doc_text(job, "metadata.name", ""));
    return history_summary(job, pods, run, clock_unix_ms());
}

static int add_current(const struct run_places *places, const char *namespace, const char *name,
                       json_t *runs, struct muster_err *err)
{
    struct store_page page = {0};
    int r = store_list(places->store,
                       &(struct store_query){.resource = "pytorchjobs", .namespace = namespace},
                       &page, err);
    size_t i;
    json_t *job;
    json_array_foreach (page.items, i, job) {
        muster_auto(doc) json_t *pods = NULL;
        if (r < 0 || (name && strcmp(doc_text(job, "metadata.name", ""), name) != 0)) {
            continue;
        }
        r = list_pods(places, job, &pods, err);
        if (r == 0) {
            add_summary(runs, summary_of(places, job, pods), true);
        }
    }
    store_page_done(&page);
    return r;
}

int runs_list(const struct run_places *places, const char *namespace, const char *name,
              json_t *runs, struct muster_err *err)
{
    int r = add_current(places, namespace, name, runs, err);
    if (r == 0) {
        add_pending(places, namespace, name, runs);
        history_each(places->home, namespace, name, add_archived, runs);
    }
    return r;
}

void found_run_done(struct found_run *found)
{
    json_decref(found->summary);
    json_decref(found->job);
    json_decref(found->pods);
    json_decref(found->events);
    free(found->logs);
}

static int no_such_run(const struct history_run *run, struct muster_err *err)
{
    return muster_fail(err, MUSTER_ENOENT, "there is no run %lld of job %s (any more)",
                       (long long)run->run, run->name);
}

/* Fills *ret for a job that still exists, or that is not in the history yet. */
static void take_object(const struct run_places *places, const json_t *job, json_t *pods,
                        json_t *summary, struct found_run *ret)
{
    char *logs = NULL;
    if (asprintf(&logs, "%s/jobs/%s/containers", places->home->path,
                 doc_text(job, "metadata.uid", "")) < 0) {
        logs = NULL;
    }
    *ret = (struct found_run){.summary = summary,
                              .job = json_incref((json_t *)(uintptr_t)job),
                              .pods = pods,
                              .events =
                                  archive_events(places->store, doc_text(job, "metadata.uid", "")),
                              .logs = logs};
}

static int find_current(const struct run_places *places, const struct history_run *run,
                        struct found_run *ret, struct muster_err *err)
{
    muster_auto(doc) json_t *job = NULL;
    json_t *pods = NULL;
    const struct store_key key = {"pytorchjobs", run->namespace, run->name};
    if (sweep_next_run(places->sweep, run->namespace, run->name) != run->run) {
        return no_such_run(run, err);
    }
    int r = store_get(places->store, key, &job, err);
    r = r < 0 ? r : list_pods(places, job, &pods, err);
    if (r < 0) {
        return r == MUSTER_ENOENT ? no_such_run(run, err) : r;
    }
    take_object(places, job, pods, summary_of(places, job, pods), ret);
    return 0;
}

static bool find_pending(const struct run_places *places, const struct history_run *run,
                         struct found_run *ret)
{
    muster_auto(doc) json_t *list = sweep_pending(places->sweep, run->namespace, run->name);
    size_t i;
    json_t *record;
    json_array_foreach (list, i, record) {
        const json_t *job = doc_at(record, "job");
        json_t *pods = doc_at(record, "pods");
        if (doc_int(record, "run", 0) == run->run) {
            take_object(places, job, json_incref(pods),
                        history_summary(job, pods, run->run, clock_unix_ms()), ret);
            return true;
        }
    }
    return false;
}

static bool find_archived(const char *folder, struct found_run *ret)
{
    if (!file_exists(folder)) {
        return false;
    }
    *ret = (struct found_run){.summary = read_file(folder, "summary.json"),
                              .job = read_file(folder, "job.json"),
                              .pods = read_file(folder, "pods.json"),
                              .events = read_file(folder, "events.json"),
                              .logs = file_join(folder, "logs")};
    return true;
}

int runs_find(const struct run_places *places, const struct history_run *run, struct found_run *ret,
              struct muster_err *err)
{
    muster_auto(free) char *folder = NULL;
    int r = history_path(places->home, run, &folder, err);
    return r < 0 || find_archived(folder, ret) || find_pending(places, run, ret)
               ? r
               : find_current(places, run, ret, err);
}
