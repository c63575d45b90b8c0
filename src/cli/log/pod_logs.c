/* See pod_logs.h. */
#include "cli/log/pod_logs.h"

#include "base/time/clock.h"
#include "cli/pod/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
    TURN_MS = 200,
    HOLD_MS = 300, /* time to wait for earlier lines of other ranks */
    TEXT_BYTES = 256,
};

static void turn(uv_timer_t *timer)
{
    struct pod_logs *logs = timer->data;
    struct container_log *c;
    LL_FOREACH(logs->list, c)
    {
        podlog_open_if_due(c);
    }
    podlog_show_merged(logs);
    screen_measure(logs->screen);
    log_view_tick(&logs->screen->view, clock_ms());
    screen_flush(logs->screen);
}

struct pod_logs *pod_logs_new(struct cli *cli, struct screen *screen,
                              const struct pod_logs_options *options)
{
    struct pod_logs *logs = calloc(1, sizeof *logs);
    if (!logs) {
        return NULL;
    }
    logs->cli = cli;
    logs->screen = screen;
    logs->options = *options;
    if (options->by_time) {
        logs->merge = log_merge_new(!options->follow ? -1 : options->raw ? 0 : HOLD_MS);
        if (!logs->merge) {
            free(logs);
            return NULL;
        }
    }
    uv_timer_init(&cli->loop, &logs->turn);
    logs->turn.data = logs;
    uv_timer_start(&logs->turn, turn, TURN_MS, TURN_MS);
    return logs;
}

static void free_logs(uv_handle_t *handle)
{
    free(handle->data);
}

static void free_container(struct container_log *c)
{
    kube_stream_close(c->stream);
    free(c->namespace);
    free(c->pod);
    free(c->uid);
    free(c->job_uid);
    free(c->container);
    free(c->first_end);
    free(c);
}

void pod_logs_free(struct pod_logs *logs)
{
    if (!logs) {
        return;
    }
    struct container_log *c;
    struct container_log *next;
    LL_FOREACH_SAFE(logs->list, c, next)
    {
        free_container(c);
    }
    log_merge_free(logs->merge);
    uv_close((uv_handle_t *)&logs->turn, free_logs);
}

static struct container_log *find(const struct pod_logs *logs, const char *uid,
                                  const char *container)
{
    struct container_log *c;
    LL_FOREACH(logs->list, c)
    {
        if (strcmp(c->uid, uid) == 0 && strcmp(c->container, container) == 0) {
            return c;
        }
    }
    return NULL;
}

static struct container_log *add(struct pod_logs *logs, const json_t *pod, const char *container)
{
    struct container_log *c = calloc(1, sizeof *c);
    if (!c) {
        return NULL;
    }
    char rank[64];
    char label[TEXT_BYTES];
    bool main_one = strcmp(container, ranks_main_container(pod)) == 0;
    ranks_label(pod, rank, sizeof rank);
    snprintf(label, sizeof label, "%s%s%s%s", logs->options.group ? logs->options.group : "", rank,
             main_one ? "" : " ", main_one ? "" : container);
    c->logs = logs;
    c->namespace = strdup(doc_text(pod, "metadata.namespace", "default"));
    c->pod = strdup(doc_text(pod, "metadata.name", ""));
    c->uid = strdup(doc_text(pod, "metadata.uid", ""));
    c->job_uid = strdup(doc_text(pod, "metadata.ownerReferences.0.uid", ""));
    c->container = strdup(container);
    c->newest = -1;
    c->reading = -1;
    c->view = log_view_add(&logs->screen->view, logs->options.prefixes ? label : "");
    c->source = logs->merge ? log_merge_add(logs->merge, c) : NULL;
    if (!c->namespace || !c->pod || !c->uid || !c->job_uid || !c->container || !c->view ||
        (logs->merge && !c->source)) {
        free_container(c);
        return NULL;
    }
    LL_APPEND(logs->list, c);
    return c;
}

static void update(struct pod_logs *logs, const json_t *pod, const char *container, bool gone)
{
    const char *uid = doc_text(pod, "metadata.uid", "");
    struct container_log *c = find(logs, uid, container);
    if (!c) {
        c = add(logs, pod, container);
    }
    if (!c) {
        return;
    }
    const json_t *status = ranks_container_status(pod, container);
    bool running = doc_at(status, "state.running") != NULL;
    bool started =
        running || doc_at(status, "state.terminated") || doc_at(status, "lastState.terminated");
    if (started || !logs->options.follow) {
        c->newest = (int)doc_int(status, "restartCount", 0);
        c->ended = !running;
    }
    c->gone = gone;
    podlog_open_if_due(c);
}

static void update_list(struct pod_logs *logs, const json_t *pod, const char *path, bool gone)
{
    size_t i;
    json_t *container;
    json_array_foreach (doc_at(pod, path), i, container) {
        update(logs, pod, doc_text(container, "name", ""), gone);
    }
}

void pod_logs_pod(struct pod_logs *logs, const json_t *pod, bool gone)
{
    if (logs->options.all) {
        update_list(logs, pod, "spec.initContainers", gone);
        update_list(logs, pod, "spec.containers", gone);
        return;
    }
    const char *chosen = logs->options.container;
    update(logs, pod, chosen ? chosen : ranks_main_container(pod), gone);
}

bool pod_logs_idle(const struct pod_logs *logs)
{
    const struct container_log *c;
    LL_FOREACH(logs->list, c)
    {
        if (podlog_is_busy(c)) {
            return false;
        }
    }
    return true;
}

bool pod_logs_settled(const struct pod_logs *logs)
{
    const struct container_log *c;
    LL_FOREACH(logs->list, c)
    {
        if ((c->ended || c->gone) && podlog_is_busy(c)) {
            return false;
        }
    }
    return true;
}

void pod_logs_finish(struct pod_logs *logs)
{
    struct container_log *c;
    LL_FOREACH(logs->list, c)
    {
        podlog_finish(c);
    }
}

bool pod_logs_read_one(const struct pod_logs *logs)
{
    const struct container_log *c;
    LL_FOREACH(logs->list, c)
    {
        if (c->complete) {
            return pod_logs_idle(logs);
        }
    }
    return false;
}

int pod_logs_error(const struct pod_logs *logs, struct muster_err *err)
{
    return logs->err.code ? muster_fail(err, logs->err.code, "%s", logs->err.text) : 0;
}

const char *pod_logs_last_line(const struct pod_logs *logs, const char *pod, const char *container,
                               size_t index)
{
    const struct container_log *newest = NULL; /* a pod that was made again has the same name */
    const struct container_log *c;
    LL_FOREACH(logs->list, c)
    {
        if (strcmp(c->pod, pod) == 0 && strcmp(c->container, container) == 0) {
            newest = c;
        }
    }
    return newest ? log_view_last_line(newest->view, index) : NULL;
}

const char *pod_logs_first_failure(const struct pod_logs *logs, const char *pod,
                                   const char *container)
{
    const struct container_log *c;
    LL_FOREACH(logs->list, c)
    {
        if (strcmp(c->pod, pod) == 0 && strcmp(c->container, container) == 0) {
            return c->first_end;
        }
    }
    return NULL;
}
