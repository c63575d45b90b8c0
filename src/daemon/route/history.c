/* See history.h. */
#include "daemon/route/history.h"

#include "api/api.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/file.h"
#include "base/time/clock.h"
#include "daemon/history/archive.h"
#include "daemon/history/deleted_pods.h"
#include "daemon/history/paths.h"
#include "daemon/history/prune.h"
#include "daemon/history/summary.h"
#include "daemon/route/logs.h"
#include "daemon/route/pod.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES_MAX = 256 << 20, NAMESPACE_BYTES = 64, NAME_BYTES = 254 };

/* ---- What there is ---- */

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

/* One that cannot be read (a power cut, a bad disk) is listed as what is known of it. */
static void add_archived(void *arg, const struct history_run *run, const char *folder)
{
    json_t *summary = read_file(folder, "summary.json");
    add_summary(arg,
                summary ? summary
                        : json_pack("{s:s, s:s, s:I, s:s}", "namespace", run->namespace, "name",
                                    run->name, "run", (json_int_t)run->run, "state", "Unreadable"),
                false);
}

static void add_pending(const struct history_routes *routes, const char *namespace,
                        const char *name, json_t *runs)
{
    muster_auto(doc) json_t *list = sweep_pending(routes->sweep, namespace, name);
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

/* The newest of each name: those that are there, and of the deleted ones the last. */
static int list_pods(const struct history_routes *routes, const json_t *job, json_t **ret,
                     struct muster_err *err)
{
    const char *uid = doc_text(job, "metadata.uid", "");
    const struct store_query query = {
        .resource = "pods", .namespace = doc_text(job, "metadata.namespace", ""), .owner_uid = uid};
    struct store_page page = {0};
    muster_auto(doc) json_t *by_name = json_object();
    muster_auto(doc) json_t *kept = deleted_pods_list(routes->home, uid);
    int r = store_list(routes->store, &query, &page, err);
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

static json_t *summary_of(const struct history_routes *routes, const json_t *job,
                          const json_t *pods)
{
    int64_t run = sweep_next_run(routes->sweep, doc_text(job, "metadata.namespace", ""),
                                 doc_text(job, "metadata.name", ""));
    return history_summary(job, pods, run, clock_unix_ms());
}

static int add_current(const struct history_routes *routes, const char *namespace, const char *name,
                       json_t *runs, struct muster_err *err)
{
    struct store_page page = {0};
    int r = store_list(routes->store,
                       &(struct store_query){.resource = "pytorchjobs", .namespace = namespace},
                       &page, err);
    size_t i;
    json_t *job;
    json_array_foreach (page.items, i, job) {
        muster_auto(doc) json_t *pods = NULL;
        if (r < 0 || (name && strcmp(doc_text(job, "metadata.name", ""), name) != 0)) {
            continue;
        }
        r = list_pods(routes, job, &pods, err);
        if (r == 0) {
            add_summary(runs, summary_of(routes, job, pods), true);
        }
    }
    store_page_done(&page);
    return r;
}

/* ---- The list ---- */

/* By their beginning; one that has not begun is the newest. */
static int newest_first(const json_t *a, const json_t *b)
{
    int order = strcmp(doc_text(b, "started", "9999"), doc_text(a, "started", "9999"));
    int64_t ra = doc_int(a, "run", 0), rb = doc_int(b, "run", 0);
    order = order ? order : (ra < rb) - (ra > rb);
    return order ? order : strcmp(doc_text(a, "name", ""), doc_text(b, "name", ""));
}

/* 0: all of them. New reference. */
static json_t *newest(const json_t *runs, int64_t limit)
{
    json_t *sorted = doc_sorted(runs, newest_first);
    while (limit > 0 && (int64_t)json_array_size(sorted) > limit) {
        json_array_remove(sorted, json_array_size(sorted) - 1);
    }
    return sorted;
}

/* A number of the query; absent: 0. */
static int read_number(const struct http_request *request, const char *name, int64_t *ret,
                       struct muster_err *err)
{
    const char *text = http_query(request, name);
    char *end = NULL;
    errno = 0;
    long long number = text && *text ? strtoll(text, &end, 10) : 0;
    if (end && (*end || number < 0 || errno)) {
        return muster_fail(err, MUSTER_EINVAL, "%s must be a number: %.40s", name, text);
    }
    *ret = number;
    return 0;
}

/* Absent: NULL, any. What is given must be a name: it becomes part of a path. */
static int read_names(const struct http_request *request, const struct home *home,
                      const char **ret_namespace, const char **ret_name, struct muster_err *err)
{
    const char *namespace = http_query(request, "namespace");
    const char *name = http_query(request, "job");
    muster_auto(free) char *path = NULL;
    const struct history_run run = {namespace ? namespace : "default", name ? name : "any", 0};
    *ret_namespace = namespace;
    *ret_name = name;
    return name && !namespace
               ? muster_fail(err, MUSTER_EINVAL, "a job is of a namespace: namespace= is missing")
               : history_path(home, &run, &path, err);
}

static int send_list(const struct history_routes *routes, const struct http_request *request,
                     struct http_reply *reply, struct muster_err *err)
{
    const char *namespace, *name;
    int64_t limit = 0;
    muster_auto(doc) json_t *runs = json_array();
    int r = read_names(request, routes->home, &namespace, &name, err);
    r = r < 0 ? r : read_number(request, "limit", &limit, err);
    r = r < 0 ? r : add_current(routes, namespace, name, runs, err);
    if (r < 0) {
        return r;
    }
    add_pending(routes, namespace, name, runs);
    history_each(routes->home, namespace, name, add_archived, runs);
    api_send_json(reply, 200, json_pack("{s:o}", "runs", newest(runs, limit)));
    return 0;
}

static int remove_runs(const struct history_routes *routes, const struct http_request *request,
                       struct http_reply *reply, struct muster_err *err)
{
    const char *namespace, *name;
    int64_t run = 0;
    size_t count = 0;
    int r = read_names(request, routes->home, &namespace, &name, err);
    r = r < 0 ? r : read_number(request, "run", &run, err);
    r = r < 0 ? r : history_remove(routes->home, namespace, name, run, &count, err);
    if (r == 0) {
        api_send_json(reply, 200, json_pack("{s:I}", "removed", (json_int_t)count));
    }
    return r;
}

/* ---- One run ---- */

struct found {
    json_t *summary;
    json_t *job;
    json_t *pods;
    json_t *events;
    char *logs; /* the folder of logs: POD-UID/CONTAINER/ATTEMPT */
};

static void found_done(struct found *found)
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

/* Of a job that is there, or is not in the history yet. */
static bool take_object(const struct history_routes *routes, const json_t *job, json_t *pods,
                        json_t *summary, struct found *ret)
{
    char *logs = NULL;
    if (asprintf(&logs, "%s/jobs/%s/containers", routes->home->path,
                 doc_text(job, "metadata.uid", "")) < 0) {
        logs = NULL;
    }
    *ret =
        (struct found){.summary = summary,
                       .job = json_incref((json_t *)(uintptr_t)job),
                       .pods = pods,
                       .events = archive_events(routes->store, doc_text(job, "metadata.uid", "")),
                       .logs = logs};
    return true;
}

static int find_current(const struct history_routes *routes, const struct history_run *run,
                        struct found *ret, struct muster_err *err)
{
    muster_auto(doc) json_t *job = NULL;
    json_t *pods = NULL;
    const struct store_key key = {"pytorchjobs", run->namespace, run->name};
    if (sweep_next_run(routes->sweep, run->namespace, run->name) != run->run) {
        return no_such_run(run, err);
    }
    int r = store_get(routes->store, key, &job, err);
    r = r < 0 ? r : list_pods(routes, job, &pods, err);
    if (r < 0) {
        return r == MUSTER_ENOENT ? no_such_run(run, err) : r;
    }
    take_object(routes, job, pods, summary_of(routes, job, pods), ret);
    return 0;
}

static bool find_pending(const struct history_routes *routes, const struct history_run *run,
                         struct found *ret)
{
    muster_auto(doc) json_t *list = sweep_pending(routes->sweep, run->namespace, run->name);
    size_t i;
    json_t *record;
    json_array_foreach (list, i, record) {
        const json_t *job = doc_at(record, "job");
        json_t *pods = doc_at(record, "pods");
        if (doc_int(record, "run", 0) == run->run) {
            return take_object(routes, job, json_incref(pods),
                               history_summary(job, pods, run->run, clock_unix_ms()), ret);
        }
    }
    return false;
}

static bool find_archived(const char *folder, struct found *ret)
{
    if (!file_exists(folder)) {
        return false;
    }
    *ret = (struct found){.summary = read_file(folder, "summary.json"),
                          .job = read_file(folder, "job.json"),
                          .pods = read_file(folder, "pods.json"),
                          .events = read_file(folder, "events.json"),
                          .logs = file_join(folder, "logs")};
    return true;
}

static int find_run(const struct history_routes *routes, const struct history_run *run,
                    struct found *ret, struct muster_err *err)
{
    muster_auto(free) char *folder = NULL;
    int r = history_path(routes->home, run, &folder, err);
    return r < 0 || find_archived(folder, ret) || find_pending(routes, run, ret)
               ? r
               : find_current(routes, run, ret, err);
}

/* The last pod of that name, or the one of that uid. */
static const json_t *find_pod(const json_t *pods, const char *name, const char *uid)
{
    for (size_t i = json_array_size(pods); i-- > 0;) {
        const json_t *pod = json_array_get(pods, i);
        if (strcmp(doc_text(pod, "metadata.name", ""), name) == 0 &&
            (!uid || strcmp(doc_text(pod, "metadata.uid", ""), uid) == 0)) {
            return pod;
        }
    }
    return NULL;
}

static int send_log(const struct history_routes *routes, const struct found *found,
                    const char *name, const struct http_request *request, struct http_reply *reply,
                    struct muster_err *err)
{
    const json_t *pod = find_pod(found->pods, name, http_query(request, "uid"));
    struct api_log_query query;
    muster_auto(free) char *folder = NULL;
    if (!pod) {
        return muster_fail(err, MUSTER_ENOENT, "pods \"%s\" not found in this run", name);
    }
    int r = pod_log_query_read(request, pod, &query, err);
    if (r < 0) {
        return r;
    }
    if (asprintf(&folder, "%s/%s/%s", found->logs, doc_text(pod, "metadata.uid", ""),
                 query.container) < 0) {
        folder = NULL;
        return err_no_memory(err);
    }
    query.follow = false;
    logs_stream_folder(routes->loop, folder, &query, pod, reply);
    return 0;
}

static int send_run(const struct found *found, struct http_reply *reply)
{
    api_send_json(reply, 200,
                  json_pack("{s:O?, s:O?, s:O?, s:O?}", "summary", found->summary, "job",
                            found->job, "pods", found->pods, "events", found->events));
    return 0;
}

static int handle_run(const struct history_routes *routes, const char *rest,
                      const struct http_request *request, struct http_reply *reply,
                      struct muster_err *err)
{
    char namespace[NAMESPACE_BYTES], name[NAME_BYTES], pod[NAME_BYTES];
    long long number = 0;
    int one = 0, log = 0;
    int words = sscanf(rest, "/%63[^/]/%253[^/]/%lld%n/pods/%253[^/]/log%n", namespace, name,
                       &number, &one, pod, &log);
    bool whole = words == 3 && rest[one] == '\0';
    if (number < 1 || !(whole || (words == 4 && log && rest[log] == '\0'))) {
        return muster_fail(err, MUSTER_ENOENT, "there is no /muster/v1/history%s", rest);
    }
    const struct history_run run = {namespace, name, number};
    struct found found = {0};
    int r = find_run(routes, &run, &found, err);
    r = r < 0   ? r
        : whole ? send_run(&found, reply)
                : send_log(routes, &found, pod, request, reply, err);
    found_done(&found);
    return r;
}

void history_routes_handle(const struct history_routes *routes, const char *rest,
                           const struct http_request *request, struct http_reply *reply)
{
    struct muster_err err = MUSTER_ERR_INIT;
    bool removes = strcmp(request->method, "DELETE") == 0;
    int r;
    if (*rest == '\0') {
        r = removes ? remove_runs(routes, request, reply, &err)
                    : send_list(routes, request, reply, &err);
    } else if (removes) {
        r = muster_fail(&err, MUSTER_EMETHOD, "/muster/v1/history%s takes GET", rest);
    } else {
        r = handle_run(routes, rest, request, reply, &err);
    }
    if (r < 0) {
        api_send_error(reply, &err);
    }
}
