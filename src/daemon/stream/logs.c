/* See logs.h. A stream reads as fast as its client takes: when the reply's queue is full it waits
 * for on_drained. */
#include "daemon/stream/logs.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/file.h"
#include "daemon/object/jobs.h"
#include "process/log/log.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE_BYTES = 64 * 1024, SPEC_BYTES_MAX = 4 << 20 };

struct stream {
    struct process_log *log;
    struct http_reply *reply;
    char *piece;
    size_t count; /* bytes of the piece that the reply has not taken yet */
    bool at_end;
};

/* Makes the path jobs/UID/containers/POD-UID/CONTAINER; the caller frees it. */
static char *container_folder(const struct home *home, const json_t *pod, const char *container)
{
    char *path = NULL;
    return asprintf(&path, "%s/jobs/%s/containers/%s/%s", home->path, jobs_folder_uid(pod),
                    doc_text(pod, "metadata.uid", ""), container) < 0
               ? NULL
               : path;
}

static void free_stream(struct stream *s)
{
    process_log_close(s->log);
    free(s->piece);
    free(s);
}

static void on_gone(void *arg)
{
    free_stream(arg);
}

/* Writes the piece to the reply; false if the reply's queue is full. */
static bool flush(struct stream *s)
{
    if (s->count > 0 && http_reply_write(s->reply, s->piece, s->count) < 0) {
        return false;
    }
    s->count = 0;
    return true;
}

static void pump(void *arg)
{
    struct stream *s = arg;
    enum process_log_state state = PROCESS_LOG_MORE;
    while (flush(s) && !s->at_end && state == PROCESS_LOG_MORE) {
        if (process_log_read(s->log, s->piece, PIECE_BYTES, &s->count, &state, NULL) < 0) {
            state = PROCESS_LOG_END;
        }
        s->at_end = state == PROCESS_LOG_END;
    }
    if (s->at_end && s->count == 0) {
        struct http_reply *reply = s->reply;
        free_stream(s);
        http_reply_end(reply);
    }
}

static int start(uv_loop_t *loop, const struct process_log_options *options,
                 struct http_reply *reply, struct muster_err *err)
{
    struct stream *s = calloc(1, sizeof *s);
    char *piece = malloc(PIECE_BYTES);
    if (!s || !piece) {
        free(s);
        free(piece);
        return err_no_memory(err);
    }
    s->reply = reply;
    s->piece = piece;
    int r = process_log_open(loop, options, pump, s, &s->log, err);
    if (r < 0) {
        free_stream(s);
        return r;
    }
    reply->arg = s;
    reply->on_gone = on_gone;
    reply->on_drained = pump;
    http_reply_start(reply, 200, "text/plain");
    pump(s);
    return 0;
}

void logs_stream(uv_loop_t *loop, const struct home *home, const struct api_log_query *query,
                 const json_t *pod, struct http_reply *reply)
{
    muster_auto(free) char *folder = container_folder(home, pod, query->container);
    logs_stream_folder(loop, folder, query, pod, reply);
}

void logs_stream_folder(uv_loop_t *loop, const char *folder, const struct api_log_query *query,
                        const json_t *pod, struct http_reply *reply)
{
    const struct process_log_options options = {.folder = folder,
                                                .previous = query->previous,
                                                .by_number = query->attempt >= 0,
                                                .attempt = (int)query->attempt,
                                                .follow = query->follow,
                                                .timestamps = query->timestamps,
                                                .tail_lines = query->tail_lines,
                                                .since_unix_ms = query->since_unix_ms,
                                                .limit_bytes = query->limit_bytes,
                                                .frames = query->frames,
                                                .watermarks = query->watermarks,
                                                .as_written = query->as_written,
                                                .from = (uint64_t)query->from};
    struct muster_err err = MUSTER_ERR_INIT;
    int r = folder ? start(loop, &options, reply, &err) : err_no_memory(&err);
    if (r == MUSTER_ENOENT && !query->previous) {
        /* The text is the kubelet's; on a 400 kubectl logs -f tries again. */
        muster_fail(&err, MUSTER_EINVAL, "container \"%s\" in pod \"%s\" is waiting to start",
                    query->container, doc_text(pod, "metadata.name", ""));
    }
    if (r < 0) {
        api_send_error(reply, &err);
    }
}

bool logs_has_previous(const struct home *home, const json_t *pod, const char *container)
{
    muster_auto(free) char *folder = container_folder(home, pod, container);
    int newest[2];
    return folder && process_log_attempts(folder, newest, 2) == 2;
}

static int read_spec(const char *folder, int attempt, json_t **ret, struct muster_err *err)
{
    muster_auto(free) char *path = NULL;
    muster_auto(free) char *text = NULL;
    size_t bytes = 0;
    if (asprintf(&path, "%s/%d/spec.json", folder, attempt) < 0) {
        path = NULL;
        return err_no_memory(err);
    }
    int r = file_read(path, SPEC_BYTES_MAX, &text, &bytes, err);
    return r < 0 ? r : doc_parse(text, bytes, ret, err);
}

int logs_describe(const struct home *home, const json_t *pod, const char *container, json_t **ret,
                  struct muster_err *err)
{
    muster_auto(free) char *folder = container_folder(home, pod, container);
    int newest = 0;
    if (!folder) {
        return err_no_memory(err);
    }
    if (process_log_attempts(folder, &newest, 1) == 0) {
        return muster_fail(err, MUSTER_ENOENT, "container %s of pod %s has not started", container,
                           doc_text(pod, "metadata.name", "?"));
    }
    muster_auto(doc) json_t *spec = NULL;
    int r = read_spec(folder, newest, &spec, err);
    if (r < 0) {
        return r;
    }
    json_t *mounts = doc_at(spec, "mounts");
    *ret = json_pack("{s:s, s:I, s:o, s:o}", "cwd", doc_text(spec, "cwd", "/"), "logBytesRotated",
                     (json_int_t)process_log_rotated(folder, newest), "mounts",
                     mounts ? json_incref(mounts) : json_array(), "logs",
                     process_log_paths(folder, newest));
    return *ret ? 0 : err_no_memory(err);
}
