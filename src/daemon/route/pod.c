/* See pod.h. */
#include "daemon/route/pod.h"

#include "api/api.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "daemon/history/archive.h"
#include "daemon/history/deleted_pods.h"
#include "daemon/object/jobs.h"
#include "daemon/stream/logs.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMESPACE_BYTES = 64, NAME_BYTES = 254, PART_BYTES = 96 };

/* ---- Pods that were deleted ---- */

static bool same(const json_t *object, const char *path, const char *text)
{
    return !text || strcmp(doc_text(object, path, ""), text) == 0;
}

/* Whether a pod that was kept is deleted: pods are kept before they are deleted. 1: it is gone; 0:
 * it still exists; or an error. */
static int is_deleted(const struct pod_routes *routes, const json_t *pod, struct muster_err *err)
{
    const struct store_key key = {"pods", doc_text(pod, "metadata.namespace", ""),
                                  doc_text(pod, "metadata.name", "")};
    muster_auto(doc) json_t *now = NULL;
    int r = store_get(routes->store, key, &now, err);
    return r == MUSTER_ENOENT ? 1
           : r < 0            ? r
                              : !same(now, "metadata.uid", doc_text(pod, "metadata.uid", ""));
}

static int add_gone(const struct pod_routes *routes, const json_t *job, json_t *gone,
                    struct muster_err *err)
{
    muster_auto(doc) json_t *kept =
        deleted_pods_list(routes->home, doc_text(job, "metadata.uid", ""));
    size_t i;
    json_t *pod;
    json_array_foreach (kept, i, pod) {
        int r = is_deleted(routes, pod, err);
        if (r < 0 || (r > 0 && json_array_append(gone, pod) < 0)) {
            return r < 0 ? r : err_no_memory(err);
        }
    }
    return 0;
}

/* Lists the deleted pods of the namespace's jobs, for each job the oldest first. */
static int list_gone(const struct pod_routes *routes, const char *namespace, json_t **ret,
                     struct muster_err *err)
{
    const struct store_query query = {.resource = "pytorchjobs", .namespace = namespace};
    struct store_page jobs = {0};
    muster_auto(doc) json_t *gone = json_array();
    int r = store_list(routes->store, &query, &jobs, err);
    size_t i;
    json_t *object;
    json_array_foreach (jobs.items, i, object) {
        r = r < 0 ? r : add_gone(routes, object, gone, err);
    }
    store_page_done(&jobs);
    if (r == 0) {
        *ret = muster_take(gone);
    }
    return r;
}

/* Finds a pod whose job is deleted too: the folder stays for the `muster run` that may still read
 * there. */
static int find_orphan(const struct pod_routes *routes, const char *namespace, const char *name,
                       const char *uid, json_t **ret, struct muster_err *err)
{
    muster_auto(doc) json_t *pod = uid ? deleted_pods_find(routes->home, uid) : NULL;
    if (!pod &&
        uid) { /* it went with its job, and the agent has not written down yet how it ended */
        pod = archive_pending_pod(routes->home, uid);
    }
    if (!pod || !same(pod, "metadata.name", name) || !same(pod, "metadata.namespace", namespace)) {
        return muster_fail(err, MUSTER_ENOENT, "pods \"%s\" not found", name);
    }
    *ret = muster_take(pod);
    return 0;
}

/* Finds the pod with this name, or else the last one that had it; with a uid, the pod with this
 * uid. */
static int find_pod(const struct pod_routes *routes, const char *namespace, const char *name,
                    const char *uid, json_t **ret, struct muster_err *err)
{
    muster_auto(doc) json_t *pod = NULL;
    muster_auto(doc) json_t *gone = NULL;
    int r = store_get(routes->store, (struct store_key){"pods", namespace, name}, &pod, err);
    if (r == 0 && same(pod, "metadata.uid", uid)) {
        *ret = muster_take(pod);
        return 0;
    }
    if (r < 0 && r != MUSTER_ENOENT) { /* without an answer the error is reported */
        return r;
    }
    r = list_gone(routes, namespace, &gone, err);
    for (size_t i = json_array_size(gone); r == 0 && i-- > 0;) {
        json_t *at = json_array_get(gone, i);
        if (same(at, "metadata.name", name) && same(at, "metadata.uid", uid)) {
            *ret = json_incref(at);
            return 0;
        }
    }
    return r < 0 ? r : find_orphan(routes, namespace, name, uid, ret, err);
}

/* Finds the pod that had the name before this pod; *ret stays NULL if there is none. */
static int find_before(const struct pod_routes *routes, const json_t *pod, json_t **ret,
                       struct muster_err *err)
{
    muster_auto(doc) json_t *gone = NULL;
    json_t *before = NULL;
    int r = list_gone(routes, doc_text(pod, "metadata.namespace", ""), &gone, err);
    size_t i;
    json_t *at;
    json_array_foreach (gone, i, at) {
        if (same(at, "metadata.uid", doc_text(pod, "metadata.uid", ""))) {
            break;
        }
        before = same(at, "metadata.name", doc_text(pod, "metadata.name", "")) ? at : before;
    }
    *ret = json_incref(before);
    return r;
}

/* ---- The routes ---- */

static int send_list(const struct pod_routes *routes, const char *namespace,
                     const struct http_request *request, struct http_reply *reply,
                     struct muster_err *err)
{
    struct selector labels = {0};
    struct store_page live = {0};
    muster_auto(doc) json_t *gone = NULL;
    muster_auto(doc) json_t *chosen = json_array();
    int r = selector_parse_labels(http_query(request, "labelSelector"), &labels, err);
    r = r < 0 ? r : list_gone(routes, namespace, &gone, err);
    const struct store_query query = {
        .resource = "pods", .namespace = namespace, .labels = &labels};
    r = r < 0 ? r : store_list(routes->store, &query, &live, err);
    size_t i;
    json_t *pod;
    json_array_foreach (gone, i, pod) {
        if (selector_match_labels(&labels, pod)) {
            json_array_append(chosen, pod);
        }
    }
    if (r == 0) {
        api_send_json(reply, 200, json_pack("{s:O, s:O}", "live", live.items, "gone", chosen));
    }
    store_page_done(&live);
    selector_done(&labels);
    return r;
}

int pod_log_query_read(const struct http_request *request, const json_t *pod,
                       struct api_log_query *ret, struct muster_err *err)
{
    int r = api_log_query_read(request, pod, ret, err);
    if (r < 0) {
        return r;
    }
    const char *from = http_query(request, "from");
    ret->frames = http_query_bool(request, "frames") && !ret->timestamps;
    ret->watermarks = http_query_bool(request, "watermarks");
    ret->as_written = http_query_bool(request, "asWritten");
    ret->from = from ? strtoll(from, NULL, 10) : 0;
    return ret->from < 0 || (ret->frames && ret->limit_bytes >= 0)
               ? muster_fail(err, MUSTER_EINVAL,
                             "from must be a number from 0, and frames have no "
                             "limitBytes")
               : 0;
}

static int send_log(const struct pod_routes *routes, json_t *pod,
                    const struct http_request *request, struct http_reply *reply,
                    struct muster_err *err)
{
    struct api_log_query query;
    muster_auto(doc) json_t *before = NULL;
    int r = pod_log_query_read(request, pod, &query, err);
    if (r < 0) {
        return r;
    }
    if (query.previous && !logs_has_previous(routes->home, pod, query.container)) {
        r = find_before(routes, pod, &before, err);
        if (r < 0) {
            return r;
        }
        query.previous = !before;
    }
    logs_stream(routes->loop, routes->home, &query, before ? before : pod, reply);
    return 0;
}

static int send_container(const struct pod_routes *routes, const json_t *pod, const char *container,
                          struct http_reply *reply, struct muster_err *err)
{
    json_t *description = NULL;
    int r = logs_describe(routes->home, pod, container, &description, err);
    if (r == 0) {
        api_send_json(reply, 200, description);
    }
    return r;
}

/* Answers for a part of a pod: "log", "stacks" or "container/C". */
static int send_part(const struct pod_routes *routes, const char *part, json_t *pod,
                     const struct http_request *request, struct http_reply *reply,
                     struct muster_err *err)
{
    static const char container[] = "container/";
    if (strcmp(part, "log") == 0) {
        return send_log(routes, pod, request, reply, err);
    }
    if (strcmp(part, "stacks") == 0) {
        agent_stacks(routes->agent, jobs_folder_uid(pod), reply);
        return 0;
    }
    const char *name = part + sizeof container - 1;
    if (strncmp(part, container, sizeof container - 1) != 0 || !*name || *name == '.' ||
        strchr(name, '/')) {
        return muster_fail(err, MUSTER_ENOENT,
                           "a pod here has log, stacks and container/NAME, no %s", part);
    }
    return send_container(routes, pod, name, reply, err);
}

void pod_routes_handle(const struct pod_routes *routes, const char *rest,
                       const struct http_request *request, struct http_reply *reply)
{
    assert(routes->home && routes->store);
    char namespace[NAMESPACE_BYTES], name[NAME_BYTES], part[PART_BYTES];
    int all = 0, one = 0;
    struct muster_err err = MUSTER_ERR_INIT;
    muster_auto(doc) json_t *pod = NULL;
    int words = sscanf(rest, "%63[^/]/pods%n/%253[^/]/%95s%n", namespace, &all, name, part, &one);
    int r;
    if (words == 1 && all > 0 && rest[all] == '\0') {
        r = send_list(routes, namespace, request, reply, &err);
    } else if (words == 3 && rest[one] == '\0') {
        r = find_pod(routes, namespace, name, http_query(request, "uid"), &pod, &err);
        r = r < 0 ? r : send_part(routes, part, pod, request, reply, &err);
    } else {
        r = muster_fail(&err, MUSTER_ENOENT, "there is no /muster/v1/namespaces/%s", rest);
    }
    if (r < 0) {
        api_send_error(reply, &err);
    }
}
