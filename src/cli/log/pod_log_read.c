/* Receives and shows the runs of one container; see pod_log_read.h.
 *
 * An attempt is one run of a container; attempt n is the run after n restarts. Attempts are read in
 * order, each to its end. A stream that ends while its attempt still runs was cut (the controller
 * is being replaced): it is opened again at the byte that comes next.
 */
#include "cli/log/pod_log_read.h"

#include "base/err.h"
#include "base/time/clock.h"
#include "base/time/timestamp.h"
#include "cli/show/bytes.h"
#include "process/log/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    QUERY_BYTES = 512,
    READ_BYTES = 64 << 10,
    OUT_BYTES = 1 << 20, /* from this size on, output is written */
    AGAIN_MS = 1000,     /* a cluster is not asked more often for a log that has ended */
};

static bool has_more(const struct container_log *c)
{
    if (c->logs->options.ends_with_start && c->complete) {
        return false;
    }
    return c->newest > c->reading || (c->newest >= 0 && !c->complete);
}

bool podlog_is_busy(const struct container_log *c)
{
    return c->stream || c->closing || has_more(c);
}

/* ---- Showing ---- */

static void put(struct container_log *c, const char *bytes, size_t count)
{
    struct screen *screen = c->logs->screen;
    if (!c->logs->options.raw) {
        log_view_feed(c->view, bytes, count, clock_ms());
        return;
    }
    buf_add(&screen->out, bytes, count);
    if (screen->out.used >= OUT_BYTES) {
        screen_flush(screen);
    }
}

static void put_stamp(struct container_log *c, int64_t unix_ms)
{
    char stamp[TIMESTAMP_BYTES];
    (void)timestamp_text(unix_ms, stamp);
    if (!c->logs->options.raw) {
        log_view_stamp(c->view, stamp);
        return;
    }
    put(c, stamp, strlen(stamp));
    put(c, " ", 1);
}

static void finish_attempt(struct container_log *c)
{
    c->complete = true;
    c->closing = false;
    log_view_end(c->view);
    screen_flush(c->logs->screen);
    if (c->reading == 0 && !c->first_end) {
        const char *last = NULL;
        for (size_t i = 0; i < LOG_VIEW_LAST_LINES; i++) {
            const char *line = log_view_last_line(c->view, i);
            last = line ? line : last;
        }
        c->first_end = last ? strdup(last) : NULL;
    }
}

void podlog_show_merged(struct pod_logs *logs)
{
    struct log_merge_piece piece;
    while (logs->merge && log_merge_take(logs->merge, clock_ms(), &piece)) {
        struct container_log *c = piece.owner;
        if (piece.begins && logs->options.timestamps) {
            put_stamp(c, piece.unix_ms);
        }
        put(c, piece.bytes, piece.count);
        if (piece.last) {
            finish_attempt(c);
        }
        if (c->stream && !log_merge_is_full(c->source)) {
            kube_stream_pause(c->stream, false);
        }
    }
    screen_flush(logs->screen);
}

static void end_attempt(struct container_log *c)
{
    c->closing = true;
    if (c->source) {
        log_merge_end(c->source);
        podlog_show_merged(c->logs);
    } else {
        finish_attempt(c);
    }
}

/* ---- Receiving ---- */

static void take_data(void *context, uint64_t offset, int64_t unix_ms, const char *bytes,
                      size_t count)
{
    struct container_log *c = context;
    c->at = offset + count;
    if (!c->source) {
        put(c, bytes, count);
    } else if (!log_merge_feed(c->source, unix_ms, bytes, count, clock_ms())) {
        (void)err_no_memory(&c->logs->err);
    }
}

static void take_gap(void *context, uint64_t bytes)
{
    const struct container_log *c = context;
    char size[BYTES_TEXT];
    screen_note(c->logs->screen,
                c->at == 0 ? "the first %s of %s's log were rotated away"
                           : "%s of %s's log were rotated away before they were read",
                bytes_text(bytes, size), c->pod);
}

static void take_watermark(void *context, int64_t unix_ms)
{
    const struct container_log *c = context;
    if (c->source) {
        log_merge_watermark(c->source, unix_ms);
    }
}

static void on_data(void *context, const char *bytes, size_t count)
{
    struct container_log *c = context;
    const struct frames_sink sink = {take_data, take_gap, take_watermark, c};
    if (cli_on_cluster(c->logs->cli)) {
        stamped_feed(&c->stamped, bytes, count, &sink);
    } else {
        frames_feed(&c->frames, bytes, count, &sink);
    }
    if (c->frames.broken && !c->logs->err.code) {
        (void)muster_fail(
            &c->logs->err, MUSTER_EPROTO,
            "the controller sends logs in a form that this muster cannot read; it may "
            "be of another version: muster down ends it");
        screen_note(c->logs->screen, "%s", c->logs->err.text);
    }
    if (c->stream && c->source && log_merge_is_full(c->source)) {
        kube_stream_pause(c->stream, true);
    }
    podlog_show_merged(c->logs);
}

static void read_folder(struct container_log *c, const char *folder)
{
    const struct process_log_options options = {.folder = folder,
                                                .by_number = true,
                                                .attempt = c->reading,
                                                .tail_lines = -1,
                                                .limit_bytes = -1,
                                                .frames = true,
                                                .as_written = c->logs->options.as_written,
                                                .from = c->at};
    enum process_log_state state = PROCESS_LOG_MORE;
    struct process_log *log = NULL;
    char bytes[READ_BYTES];
    size_t count = 0;
    if (process_log_open(&c->logs->cli->loop, &options, NULL, NULL, &log, NULL) < 0) {
        return;
    }
    c->frames = (struct frames){0};
    while (state == PROCESS_LOG_MORE &&
           process_log_read(log, bytes, sizeof bytes, &count, &state, NULL) == 0) {
        on_data(c, bytes, count);
    }
    process_log_close(log);
}

/* Reads the rest from files: the API serves no log of a pod that was cleaned up, but its files stay
 * as long as its job. */
static void read_rest(struct container_log *c)
{
    muster_auto(free) char *folder = NULL;
    if (cli_on_cluster(c->logs->cli)) {
        return; /* a cluster deletes them with their pod */
    }
    if (asprintf(&folder, "%s/jobs/%s/containers/%s/%s", kube_home(c->logs->cli->kube), c->job_uid,
                 c->uid, c->container) < 0) {
        folder = NULL;
        return;
    }
    read_folder(c, folder);
}

/* Whether the stream's end is the attempt's end; otherwise the next turn opens the stream again. */
static bool is_over(const struct container_log *c, int code)
{
    bool newer = c->reading < c->newest;
    if (code == 0) {
        return c->gone || newer || c->ended || !c->logs->options.follow;
    }
    bool refused = code == MUSTER_ENOENT || code == MUSTER_EINVAL;
    bool past = newer || (c->ended && cli_on_cluster(c->logs->cli));
    return !c->logs->options.follow || (past && refused); /* an old log that is no longer kept */
}

/* A container that has not started has no log yet, here and on a cluster: the command line is
 * right, and it is to be tried again. */
static void note_failure(struct pod_logs *logs, const struct muster_err *err)
{
    if (err->code == MUSTER_EINVAL && strstr(err->text, "is waiting to start")) {
        (void)muster_fail(&logs->err, MUSTER_EAGAIN, "%s; muster logs -f waits for it", err->text);
    } else {
        logs->err = *err;
    }
}

static void on_end(void *context, int code, const struct muster_err *err)
{
    struct container_log *c = context;
    c->stream = NULL;
    c->not_before_ms = cli_on_cluster(c->logs->cli) ? clock_ms() + AGAIN_MS : 0;
    if (code == MUSTER_EUNAUTH && c->logs->options.follow && !c->refused) {
        screen_note(c->logs->screen, "%s's log cannot be read, and is asked for again: %s", c->pod,
                    err->text);
    }
    c->refused = code == MUSTER_EUNAUTH;
    if (code < 0 && c->gone && c->logs->options.follow) {
        read_rest(c);
        end_attempt(c);
    } else if (is_over(c, code)) {
        if (code < 0 && !c->logs->options.follow) {
            note_failure(c->logs, err);
        }
        end_attempt(c);
    }
}

/* Goes on with the attempt that was cut, else takes the next one. */
static void choose_attempt(struct container_log *c)
{
    const struct pod_logs_options *o = &c->logs->options;
    if (c->reading >= 0 && !c->complete) {
        return;
    }
    bool each = o->follow && !o->ends_with_start && !cli_on_cluster(c->logs->cli);
    c->reading = each ? c->reading + 1 : c->newest;
    c->complete = false;
    c->at = 0;
}

/* A cluster knows the newest run of a container and the one before, and gives lines with times. */
static char *path_on_cluster(struct container_log *c)
{
    const struct pod_logs_options *o = &c->logs->options;
    const struct kube_ref log = {kube_resource_find("pods"), c->namespace, c->pod, "log"};
    int64_t newest_ms = stamped_newest_ms(&c->stamped);
    char stamp[TIMESTAMP_BYTES], since[QUERY_BYTES] = "", more[2 * QUERY_BYTES];
    stamped_resume(&c->stamped);
    if (newest_ms) {
        snprintf(since, sizeof since, "&sinceTime=%s", timestamp_seconds(newest_ms, stamp));
    } else if (o->parameters) {
        snprintf(since, sizeof since, "&%s", o->parameters);
    }
    snprintf(more, sizeof more, "container=%s&timestamps=true%s%s%s", c->container,
             o->follow ? "&follow=true" : "", o->previous ? "&previous=true" : "", since);
    return kube_path(&log, &(struct kube_query){.more = more});
}

/* Makes a path of muster's own API: that of Kubernetes finds pods only by name and while they
 * exist, and gives only bytes. Bytes that were received already are not requested again, nor
 * counted by tailLines. */
static char *path_here(struct container_log *c)
{
    const struct pod_logs_options *o = &c->logs->options;
    char attempt[32] = "";
    char from[QUERY_BYTES] = "";
    if (o->follow && !o->ends_with_start) {
        snprintf(attempt, sizeof attempt, "&attempt=%d", c->reading);
    }
    if (c->at > 0) {
        snprintf(from, sizeof from, "&from=%llu", (unsigned long long)c->at);
    } else if (o->parameters) {
        snprintf(from, sizeof from, "&%s", o->parameters);
    }
    muster_auto(free) char *base =
        o->run ? strdup(o->run) : kube_muster_path("namespaces", c->namespace, NULL);
    char *path = NULL;
    int r = !base ? -1
                  : asprintf(&path, "%s/pods/%s/log?uid=%s&container=%s&frames=true%s%s%s%s%s%s",
                             base, c->pod, c->uid, c->container, o->follow ? "&follow=true" : "",
                             o->follow && c->source ? "&watermarks=true" : "",
                             o->as_written ? "&asWritten=true" : "",
                             o->previous ? "&previous=true" : "", attempt, from);
    return r < 0 ? NULL : path;
}

static void open_stream(struct container_log *c)
{
    const struct kube_stream_events events = {on_data, on_end, c};
    struct muster_err err = MUSTER_ERR_INIT;
    choose_attempt(c);
    c->frames = (struct frames){0};
    if (c->source) {
        log_merge_begin(c->source);
    }
    muster_auto(free) char *path = cli_on_cluster(c->logs->cli) ? path_on_cluster(c) : path_here(c);
    int r = !path ? err_no_memory(&err)
                  : kube_stream_open_path(c->logs->cli->kube, path, &events, &c->stream, &err);
    if (r < 0) {
        on_end(c, r, &err);
    }
}

void podlog_open_if_due(struct container_log *c)
{
    if (!c->stream && !c->closing && has_more(c) && clock_ms() >= c->not_before_ms) {
        open_stream(c);
    }
}

void podlog_finish(struct container_log *c)
{
    kube_stream_close(c->stream);
    c->stream = NULL;
    while (!cli_on_cluster(c->logs->cli) && !c->closing && has_more(c)) {
        choose_attempt(c);
        read_rest(c);
        end_attempt(c);
    }
}
