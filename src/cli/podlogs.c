/* See podlogs.h.
 *
 * An attempt is one run of a container; attempt n is the run after n restarts. Attempts are read in
 * order, each to its end. A stream that ends while its attempt still runs was cut (the controller
 * is being replaced): it is opened again, and what was shown already is skipped.
 */
#include "cli/podlogs.h"

#include "base/clock.h"

#include "base/err.h"
#include "cli/ranks.h"
#include "process/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum { TURN_MS = 200, TEXT_BYTES = 256, QUERY_BYTES = 512, READ_BYTES = 64 << 10 };

struct container_log {
    struct podlogs *logs;
    char *namespace;
    char *pod;
    char *uid;
    char *job_uid;
    char *container;
    int newest;       /* attempt, -1: not started yet */
    bool ended;       /* the newest attempt has ended */
    bool gone;        /* the pod was deleted */
    int reading;      /* attempt being read or read last, -1: none */
    bool complete;    /* `reading` was read to its end */
    uint64_t seen;    /* bytes of `reading` that were shown */
    uint64_t to_skip; /* bytes of the open stream that were shown before */
    struct logview_stream *view;
    struct kube_stream *stream;
    struct container_log *next;
};

struct podlogs {
    struct cli *cli;
    struct screen *screen;
    struct podlogs_options options;
    struct container_log *list;
    uv_timer_t turn;
    struct muster_err err;
};

static bool has_more(const struct container_log *c)
{
    if (c->logs->options.ends_with_start && c->complete) {
        return false;
    }
    return c->newest > c->reading || (c->newest >= 0 && !c->complete);
}

static void on_data(void *context, const char *bytes, size_t count)
{
    struct container_log *c = context;
    size_t skipped = c->to_skip < count ? (size_t)c->to_skip : count;
    c->to_skip -= skipped;
    c->seen += count - skipped;
    logview_feed(c->view, bytes + skipped, count - skipped, clock_ms());
    screen_flush(c->logs->screen);
}

static void finish_attempt(struct container_log *c)
{
    c->complete = true;
    logview_end(c->view);
    screen_flush(c->logs->screen);
}

static void read_file(struct container_log *c, const char *path)
{
    char bytes[READ_BYTES];
    muster_auto(fclose) FILE *file = fopen(path, "re");
    for (size_t count; file && (count = fread(bytes, 1, sizeof bytes, file)) > 0;) {
        on_data(c, bytes, count);
    }
}

/* The API serves no log of a pod that was cleaned up, but its files stay as long as its job. */
static void read_rest(struct container_log *c)
{
    muster_auto(free) char *folder = NULL;
    if (asprintf(&folder, "%s/jobs/%s/containers/%s/%s", kube_home(c->logs->cli->kube), c->job_uid,
                 c->uid, c->container) < 0) {
        folder = NULL;
        return;
    }
    muster_auto(doc) json_t *paths = process_log_paths(folder, c->reading);
    c->to_skip = c->seen;
    size_t i;
    json_t *path;
    json_array_foreach (paths, i, path) {
        read_file(c, json_string_value(path));
    }
}

/* The stream's end is the attempt's end; else the next turn opens it again. */
static bool is_over(const struct container_log *c, int code)
{
    bool newer = c->reading < c->newest;
    if (code == 0) {
        return c->gone || newer || c->ended || !c->logs->options.follow;
    }
    bool refused = code == MUSTER_ENOENT || code == MUSTER_EINVAL;
    return !c->logs->options.follow || (newer && refused); /* an old one that is no longer kept */
}

static void on_end(void *context, int code, const struct muster_err *err)
{
    struct container_log *c = context;
    c->stream = NULL;
    if (code < 0 && c->gone && c->logs->options.follow) {
        read_rest(c);
        finish_attempt(c);
    } else if (is_over(c, code)) {
        if (code < 0 && !c->logs->options.follow) {
            c->logs->err = *err;
        }
        finish_attempt(c);
    }
}

/* Goes on with the attempt that was cut, else takes the next one. */
static void choose_attempt(struct container_log *c)
{
    const struct podlogs_options *o = &c->logs->options;
    if (c->reading >= 0 && !c->complete) {
        return;
    }
    c->reading = o->follow && !o->ends_with_start ? c->reading + 1 : c->newest;
    c->complete = false;
    c->seen = 0;
}

/* Kubernetes knows pods by name and while they are there; what is left of others is ours to say. */
static int open_log(struct container_log *c, const char *query, struct muster_err *err)
{
    struct kube *kube = c->logs->cli->kube;
    const struct kube_stream_events events = {on_data, on_end, c};
    if (!c->gone && !c->logs->options.previous) {
        const struct kube_ref ref = {kube_resource_find("pods"), c->namespace, c->pod, "log"};
        return kube_stream_open(kube, &ref, &(struct kube_query){.more = query}, &events,
                                &c->stream, err);
    }
    muster_auto(free) char *path = NULL;
    if (asprintf(&path, "/muster/v1/namespaces/%s/pods/%s/log?uid=%s%s&%s", c->namespace, c->pod,
                 c->uid, c->logs->options.previous ? "&previous=true" : "", query) < 0) {
        path = NULL;
        return err_no_memory(err);
    }
    return kube_stream_open_path(kube, path, &events, &c->stream, err);
}

static void open_stream(struct container_log *c)
{
    struct podlogs *logs = c->logs;
    const struct podlogs_options *o = &logs->options;
    choose_attempt(c);
    /* What a tail left out cannot be counted: then go on with what is new. */
    bool resumed = c->seen > 0;
    const char *parameters = resumed && o->parameters ? "tailLines=0" : o->parameters;
    c->to_skip = o->parameters ? 0 : c->seen;
    char attempt[32] = "";
    if (o->follow && !o->ends_with_start) {
        snprintf(attempt, sizeof attempt, "&attempt=%d", c->reading);
    }
    char more[QUERY_BYTES];
    snprintf(more, sizeof more, "container=%s%s%s%s%s", c->container,
             o->follow ? "&follow=true" : "", attempt, parameters ? "&" : "",
             parameters ? parameters : "");
    struct muster_err err = {0};
    int r = open_log(c, more, &err);
    if (r < 0) {
        on_end(c, r, &err);
    }
}

static void turn(uv_timer_t *timer)
{
    struct podlogs *logs = timer->data;
    struct container_log *c;
    LL_FOREACH(logs->list, c)
    {
        if (!c->stream && has_more(c)) {
            open_stream(c);
        }
    }
    screen_measure(logs->screen);
    logview_tick(&logs->screen->view, clock_ms());
    screen_flush(logs->screen);
}

struct podlogs *podlogs_new(struct cli *cli, struct screen *screen,
                            const struct podlogs_options *options)
{
    struct podlogs *logs = calloc(1, sizeof *logs);
    if (!logs) {
        return NULL;
    }
    logs->cli = cli;
    logs->screen = screen;
    logs->options = *options;
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
    free(c);
}

void podlogs_free(struct podlogs *logs)
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
    uv_close((uv_handle_t *)&logs->turn, free_logs);
}

static struct container_log *find(const struct podlogs *logs, const char *uid,
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

static struct container_log *add(struct podlogs *logs, const json_t *pod, const char *container)
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
    c->view = logview_add(&logs->screen->view, logs->options.prefixes ? label : "");
    if (!c->namespace || !c->pod || !c->uid || !c->job_uid || !c->container || !c->view) {
        free_container(c);
        return NULL;
    }
    LL_APPEND(logs->list, c);
    return c;
}

static void update(struct podlogs *logs, const json_t *pod, const char *container, bool gone)
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
    if (!c->stream && has_more(c)) {
        open_stream(c);
    }
}

static void update_list(struct podlogs *logs, const json_t *pod, const char *path, bool gone)
{
    size_t i;
    json_t *container;
    json_array_foreach (doc_at(pod, path), i, container) {
        update(logs, pod, doc_text(container, "name", ""), gone);
    }
}

void podlogs_pod(struct podlogs *logs, const json_t *pod, bool gone)
{
    if (logs->options.all) {
        update_list(logs, pod, "spec.initContainers", gone);
        update_list(logs, pod, "spec.containers", gone);
        return;
    }
    const char *chosen = logs->options.container;
    update(logs, pod, chosen ? chosen : ranks_main_container(pod), gone);
}

bool podlogs_idle(const struct podlogs *logs)
{
    const struct container_log *c;
    LL_FOREACH(logs->list, c)
    {
        if (c->stream || has_more(c)) {
            return false;
        }
    }
    return true;
}

bool podlogs_settled(const struct podlogs *logs)
{
    const struct container_log *c;
    LL_FOREACH(logs->list, c)
    {
        if ((c->ended || c->gone) && (c->stream || has_more(c))) {
            return false;
        }
    }
    return true;
}

bool podlogs_read_one(const struct podlogs *logs)
{
    const struct container_log *c;
    LL_FOREACH(logs->list, c)
    {
        if (c->complete) {
            return podlogs_idle(logs);
        }
    }
    return false;
}

int podlogs_error(const struct podlogs *logs, struct muster_err *err)
{
    return logs->err.code ? muster_fail(err, logs->err.code, "%s", logs->err.text) : 0;
}

const char *podlogs_last_line(const struct podlogs *logs, const char *pod, const char *container,
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
    return newest ? logview_last_line(newest->view, index) : NULL;
}
