/* The columns of pods are made as kube-apiserver's printPod makes them: the state in a word, how
 * many containers are ready, how often they were restarted. See columns.h.
 *
 * Layer: services, pure.
 */
#include "api/columns/columns.h"

#include "base/doc.h"
#include "base/time/age.h"
#include "base/time/timestamp.h"

#include <inttypes.h>
#include <string.h>

static void text_or_none(const char *text, struct buf *out)
{
    buf_text(out, text && *text ? text : "<none>");
}

struct pod_view {
    const char *reason;
    char text[96];
    int64_t restarts;
    int64_t last_restart_unix_ms;
    size_t ready;
    size_t containers;
    bool initialising;
    bool running;
};

static void count_restarts(const json_t *status, struct pod_view *view)
{
    view->restarts += doc_int(status, "restartCount", 0);
    int64_t ended = timestamp_read(doc_text(status, "lastState.terminated.finishedAt", NULL));
    if (ended != TIMESTAMP_NONE && ended > view->last_restart_unix_ms) {
        view->last_restart_unix_ms = ended;
    }
}

/* Returns "Error", "Signal:9" or "ExitCode:3". */
static const char *terminated_reason(const json_t *status, const char *prefix,
                                     struct pod_view *view)
{
    const char *reason = doc_text(status, "state.terminated.reason", "");
    int64_t signal = doc_int(status, "state.terminated.signal", 0);
    if (*reason) {
        (void)snprintf(view->text, sizeof view->text, "%s%s", prefix, reason);
    } else if (signal) {
        (void)snprintf(view->text, sizeof view->text, "%sSignal:%" PRId64, prefix, signal);
    } else {
        (void)snprintf(view->text, sizeof view->text, "%sExitCode:%" PRId64, prefix,
                       doc_int(status, "state.terminated.exitCode", 0));
    }
    return view->text;
}

/* The first init container that has not succeeded decides what the pod shows. */
static void view_init_containers(const json_t *pod, struct pod_view *view)
{
    const json_t *statuses = doc_at(pod, "status.initContainerStatuses");
    size_t total = json_array_size(doc_at(pod, "spec.initContainers"));
    size_t i;
    json_t *status;
    json_array_foreach (statuses, i, status) {
        count_restarts(status, view);
        const json_t *terminated = doc_at(status, "state.terminated");
        const char *waiting = doc_text(status, "state.waiting.reason", "");
        if (terminated && doc_int(terminated, "exitCode", -1) == 0) {
            continue;
        }
        view->initialising = true;
        if (terminated) {
            view->reason = terminated_reason(status, "Init:", view);
        } else if (*waiting && strcmp(waiting, "PodInitializing") != 0) {
            (void)snprintf(view->text, sizeof view->text, "Init:%s", waiting);
            view->reason = view->text;
        } else {
            (void)snprintf(view->text, sizeof view->text, "Init:%zu/%zu", i, total);
            view->reason = view->text;
        }
        return;
    }
}

static void view_containers(const json_t *pod, struct pod_view *view)
{
    const json_t *statuses = doc_at(pod, "status.containerStatuses");
    view->restarts = 0; /* restarts of init containers do not count any more, as in printPod */
    for (size_t i = json_array_size(statuses); i-- > 0;) {
        const json_t *status = json_array_get(statuses, i);
        const char *waiting = doc_text(status, "state.waiting.reason", "");
        count_restarts(status, view);
        if (*waiting) {
            view->reason = waiting;
        } else if (doc_at(status, "state.terminated")) {
            view->reason = terminated_reason(status, "", view);
        } else if (doc_bool(status, "ready", false) && doc_at(status, "state.running")) {
            view->running = true;
            view->ready++;
        }
    }
}

static struct pod_view view_pod(const json_t *pod)
{
    const char *phase = doc_text(pod, "status.phase", "Unknown");
    struct pod_view view = {
        .reason = doc_text(pod, "status.reason", phase),
        .containers = json_array_size(doc_at(pod, "spec.containers")),
    };
    view_init_containers(pod, &view);
    if (!view.initialising) {
        view_containers(pod, &view);
        if (strcmp(view.reason, "Completed") == 0 && view.running) {
            view.reason = "Running";
        }
    }
    return view;
}

static void cell_pod_ready(const json_t *pod, int64_t now_unix_ms, struct buf *out)
{
    (void)now_unix_ms;
    struct pod_view view = view_pod(pod);
    buf_format(out, "%zu/%zu", view.ready, view.containers);
}

static void cell_pod_status(const json_t *pod, int64_t now_unix_ms, struct buf *out)
{
    (void)now_unix_ms;
    struct pod_view view = view_pod(pod);
    buf_text(out, doc_at(pod, "metadata.deletionTimestamp") ? "Terminating" : view.reason);
}

static void cell_pod_restarts(const json_t *pod, int64_t now_unix_ms, struct buf *out)
{
    struct pod_view view = view_pod(pod);
    buf_format(out, "%" PRId64, view.restarts);
    if (view.restarts > 0 && view.last_restart_unix_ms > 0) {
        char age[AGE_BYTES];
        buf_format(out, " (%s ago)", age_text(now_unix_ms - view.last_restart_unix_ms, age));
    }
}

static void cell_pod_ip(const json_t *pod, int64_t now_unix_ms, struct buf *out)
{
    (void)now_unix_ms;
    text_or_none(doc_text(pod, "status.podIP", NULL), out);
}

static void cell_pod_node(const json_t *pod, int64_t now_unix_ms, struct buf *out)
{
    (void)now_unix_ms;
    text_or_none(doc_text(pod, "spec.nodeName", NULL), out);
}

const struct column columns_pod[] = {
    {"Name", "string", 0, "metadata.name", NULL},
    {"Ready", "string", 0, NULL, cell_pod_ready},
    {"Status", "string", 0, NULL, cell_pod_status},
    {"Restarts", "string", 0, NULL, cell_pod_restarts},
    {"Age", "string", 0, NULL, column_age},
    {"IP", "string", 1, NULL, cell_pod_ip},
    {"Node", "string", 1, NULL, cell_pod_node},
    {0},
};
