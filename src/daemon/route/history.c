/* See history.h. */
#include "daemon/route/history.h"

#include "api/api.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "daemon/history/paths.h"
#include "daemon/history/prune.h"
#include "daemon/route/pod.h"
#include "daemon/stream/logs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMESPACE_BYTES = 64, NAME_BYTES = 254 };

/* Orders by the time when the runs began; a run that has not begun is the newest. */
static int newest_first(const json_t *a, const json_t *b)
{
    int order = strcmp(doc_text(b, "started", "9999"), doc_text(a, "started", "9999"));
    int64_t ra = doc_int(a, "run", 0), rb = doc_int(b, "run", 0);
    order = order ? order : (ra < rb) - (ra > rb);
    return order ? order : strcmp(doc_text(a, "name", ""), doc_text(b, "name", ""));
}

/* Returns the newest runs, at most `limit`; 0: all of them. New reference. */
static json_t *newest(const json_t *runs, int64_t limit)
{
    json_t *sorted = doc_sorted(runs, newest_first);
    while (limit > 0 && (int64_t)json_array_size(sorted) > limit) {
        json_array_remove(sorted, json_array_size(sorted) - 1);
    }
    return sorted;
}

/* Reads a number from the query; 0 if the parameter is missing. */
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

/* Reads namespace and job from the query; a missing one is NULL: any. A given one must be a valid
 * name, because it becomes part of a path. */
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
    int r = read_names(request, routes->places.home, &namespace, &name, err);
    r = r < 0 ? r : read_number(request, "limit", &limit, err);
    r = r < 0 ? r : runs_list(&routes->places, namespace, name, runs, err);
    if (r == 0) {
        api_send_json(reply, 200, json_pack("{s:o}", "runs", newest(runs, limit)));
    }
    return r;
}

/* Runs that are being removed, as whole folders, in another thread. */
struct removal {
    struct http_reply *reply; /* NULL: the client has left */
    const struct home *home;
    char *namespace, *name; /* NULL: any */
    int64_t run;            /* 0: any */
    size_t count;
    int r;
    struct muster_err err;
};

static void on_removal_gone(void *arg)
{
    ((struct removal *)arg)->reply = NULL;
}

static void remove_now(void *data)
{
    struct removal *m = data;
    m->r = history_remove(m->home, m->namespace, m->name, m->run, &m->count, &m->err);
}

static void on_removed(void *data)
{
    const struct removal *m = data;
    if (m->reply && m->r < 0) {
        api_send_error(m->reply, &m->err);
    } else if (m->reply) {
        api_send_json(m->reply, 200, json_pack("{s:I}", "removed", (json_int_t)m->count));
    }
}

static void free_removal(void *data)
{
    struct removal *m = data;
    free(m->namespace);
    free(m->name);
    free(m);
}

static struct removal *new_removal(const struct home *home, const char *namespace, const char *name)
{
    struct removal *m = calloc(1, sizeof *m);
    if (m) {
        m->home = home;
        m->namespace = namespace ? strdup(namespace) : NULL;
        m->name = name ? strdup(name) : NULL;
    }
    if (!m || (namespace && !m->namespace) || (name && !m->name)) {
        if (m) {
            free_removal(m);
        }
        return NULL;
    }
    return m;
}

static int remove_runs(const struct history_routes *routes, const struct http_request *request,
                       struct http_reply *reply, struct muster_err *err)
{
    const char *namespace, *name;
    int64_t run = 0;
    int r = read_names(request, routes->places.home, &namespace, &name, err);
    r = r < 0 ? r : read_number(request, "run", &run, err);
    if (r < 0) {
        return r;
    }
    struct removal *m = new_removal(routes->places.home, namespace, name);
    if (!m) {
        return err_no_memory(err);
    }
    m->run = run;
    m->reply = reply;
    reply->arg = m;
    reply->on_gone = on_removal_gone;
    const struct disk_task task = {remove_now, on_removed, free_removal, m};
    disk_do(routes->disk, &task);
    return 0;
}

/* Returns the last pod with this name or, with a uid, the pod with this uid. */
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

static int send_log(const struct history_routes *routes, const struct found_run *found,
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

static int send_run(const struct found_run *found, struct http_reply *reply)
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
    struct found_run found = {0};
    int r = runs_find(&routes->places, &run, &found, err);
    r = r < 0   ? r
        : whole ? send_run(&found, reply)
                : send_log(routes, &found, pod, request, reply, err);
    found_run_done(&found);
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
