/* GET …/pods/NAME/log: the query is read here, the bytes come from the controller; exec,
 * attach and port-forward are the controller's altogether.
 *
 * Layer: services.
 */
#include "api/internal.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/time/clock.h"
#include "base/time/timestamp.h"

#include <string.h>

enum { NAMES_BYTES_MAX = 4096 };

static const char *const lists[] = {"spec.containers", "spec.initContainers"};

static bool has_container(const json_t *pod, const char *name)
{
    return doc_find(doc_at(pod, "spec.containers"), "name", name) ||
           doc_find(doc_at(pod, "spec.initContainers"), "name", name);
}

static void print_names(const json_t *containers, struct buf *out)
{
    size_t i;
    json_t *container;
    json_array_foreach (containers, i, container) {
        buf_format(out, "%s%s", i ? " " : "", doc_text(container, "name", ""));
    }
}

static int refuse_choice(const json_t *pod, const char *container, struct muster_err *err)
{
    struct buf names;
    const char *name = doc_text(pod, "metadata.name", "");
    buf_init(&names, NAMES_BYTES_MAX);
    print_names(doc_at(pod, lists[0]), &names);
    int r = container ? muster_fail(err, MUSTER_EINVAL,
                                    "container %.100s is not valid for pod %s; it has: [%s]",
                                    container, name, buf_str(&names))
                      : muster_fail(err, MUSTER_EINVAL,
                                    "a container name must be specified for pod %s, choose one of: "
                                    "[%s]",
                                    name, buf_str(&names));
    buf_done(&names);
    return r;
}

static int choose_container(const struct http_request *request, const json_t *pod, const char **ret,
                            struct muster_err *err)
{
    const char *name = http_query(request, "container");
    const json_t *containers = doc_at(pod, lists[0]);
    if (name && *name) {
        *ret = name;
        return has_container(pod, name) ? 0 : refuse_choice(pod, name, err);
    }
    if (json_array_size(containers) != 1) {
        return refuse_choice(pod, NULL, err);
    }
    *ret = doc_text(json_array_get(containers, 0), "name", "");
    return 0;
}

static int read_since(const struct http_request *request, int64_t *ret, struct muster_err *err)
{
    const char *time = http_query(request, "sinceTime");
    int64_t seconds = -1;
    int r = query_number(request, "sinceSeconds", &seconds, err);
    if (r < 0) {
        return r;
    }
    if (seconds >= 0) {
        int64_t now = clock_unix_ms();
        *ret = seconds < now / 1000 ? now - seconds * 1000 : 0;
    } else if (time && *time) {
        int64_t at = timestamp_read(time);
        if (at == TIMESTAMP_NONE) {
            return muster_fail(err, MUSTER_EINVAL, "sinceTime must be an RFC 3339 time: %.40s",
                               time);
        }
        *ret = at;
    }
    return 0;
}

int api_log_query_read(const struct http_request *request, const json_t *pod,
                       struct api_log_query *ret, struct muster_err *err)
{
    *ret = (struct api_log_query){
        .follow = http_query_bool(request, "follow"),
        .previous = http_query_bool(request, "previous"),
        .timestamps = http_query_bool(request, "timestamps"),
        .attempt = -1,
        .tail_lines = -1,
        .limit_bytes = -1,
    };
    int r = choose_container(request, pod, &ret->container, err);
    r = r < 0 ? r : query_number(request, "tailLines", &ret->tail_lines, err);
    r = r < 0 ? r : query_number(request, "limitBytes", &ret->limit_bytes, err);
    r = r < 0 ? r : query_number(request, "attempt", &ret->attempt, err);
    if (r < 0) {
        return r;
    }
    return read_since(request, &ret->since_unix_ms, err);
}

int verb_log(struct api_call *call, struct muster_err *err)
{
    muster_auto(doc) json_t *pod = NULL;
    struct api_log_query query;
    const struct api_hooks *hooks = &call->api->hooks;
    int r = store_get(call->api->store, call_key(call), &pod, err);
    r = r < 0 ? r : api_log_query_read(call->request, pod, &query, err);
    if (r < 0) {
        return r;
    }
    if (!hooks->pod_log) {
        return muster_fail(err, MUSTER_EUNAVAIL, "this server keeps no logs");
    }
    hooks->pod_log(hooks->arg, &query, pod, call->reply);
    return 0;
}

int verb_stream(struct api_call *call, struct muster_err *err)
{
    muster_auto(doc) json_t *pod = NULL;
    const struct api_hooks *hooks = &call->api->hooks;
    int r = store_get(call->api->store, call_key(call), &pod, err);
    if (r < 0) {
        return r;
    }
    if (!hooks->pod_stream) {
        return muster_fail(err, MUSTER_EUNAVAIL, "this server runs no pods");
    }
    hooks->pod_stream(hooks->arg, call->route.subresource, pod, call->request, call->reply);
    return 0;
}
