/* See channel.h. */
#include "process/wire/channel.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct channel {
    uv_pipe_t pipe;
    uv_shutdown_t shutdown;
    uv_idle_t report; /* calls `gone` from the loop, never from within a call */
    int open_handles;
    struct buf in;
    struct channel_hooks hooks;
    void *data;
    struct muster_err err;
    bool closing;
    bool is_gone;
};

struct pending {
    uv_write_t write;
    char *text;
};

static void on_report(uv_idle_t *idle)
{
    struct channel *channel = idle->data;
    uv_idle_stop(idle);
    assert(channel->is_gone && !channel->closing);
    channel->hooks.gone(channel->data, &channel->err);
}

static void lose(struct channel *channel, int code, const char *why)
{
    if (channel->is_gone || channel->closing) {
        return;
    }
    channel->is_gone = true;
    (void)muster_fail(&channel->err, code, "%s", why);
    uv_read_stop((uv_stream_t *)&channel->pipe);
    uv_idle_start(&channel->report, on_report);
}

/* ---- In ---- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
    struct channel *channel = handle->data;
    (void)suggested;
    enum { PIECE = 16 << 10 };
    char *room = buf_reserve(&channel->in, PIECE);
    *ret = uv_buf_init(room, room ? PIECE : 0);
}

static bool take_line(struct channel *channel, size_t from, size_t length)
{
    json_t *message = NULL;
    if (doc_parse(channel->in.data + from, length, &message, NULL) < 0) {
        lose(channel, MUSTER_EPROTO, "a line is no JSON");
        return false;
    }
    channel->hooks.message(channel->data, message);
    json_decref(message);
    return !channel->closing && !channel->is_gone;
}

static void take_lines(struct channel *channel)
{
    size_t from = 0;
    bool more = true;
    while (more) {
        const char *start = channel->in.data + from;
        const char *newline = memchr(start, '\n', channel->in.used - from);
        if (!newline) {
            break;
        }
        size_t length = (size_t)(newline - start);
        more = take_line(channel, from, length);
        from += length + 1;
    }
    assert(from <= channel->in.used);
    buf_consume(&channel->in, from);
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
    struct channel *channel = stream->data;
    (void)buffer;
    if (count == UV_ENOBUFS) {
        lose(channel, MUSTER_EPROTO, "a line is too long");
    } else if (count < 0) {
        lose(channel, MUSTER_EUNAVAIL, "the connection is closed");
    } else if (count > 0) {
        buf_grew(&channel->in, (size_t)count);
        take_lines(channel);
    }
}

/* ---- Out ---- */

static void on_written(uv_write_t *write, int status)
{
    struct pending *pending = write->data;
    struct channel *channel = write->handle->data;
    free(pending->text);
    free(pending);
    if (status < 0) {
        lose(channel, MUSTER_EUNAVAIL, "the connection is closed");
    }
}

static int queue(struct channel *channel, const char *text, size_t length)
{
    struct pending *pending = calloc(1, sizeof *pending);
    char *copy = pending ? malloc(length) : NULL;
    if (!copy) {
        free(pending);
        return MUSTER_ENOMEM;
    }
    memcpy(copy, text, length);
    pending->text = copy;
    pending->write.data = pending;
    uv_buf_t bytes = uv_buf_init(copy, (unsigned)length);
    if (uv_write(&pending->write, (uv_stream_t *)&channel->pipe, &bytes, 1, on_written) < 0) {
        free(copy);
        free(pending);
        return MUSTER_EUNAVAIL;
    }
    return 0;
}

void channel_send(struct channel *channel, json_t *message)
{
    muster_auto(doc) json_t *owned = message;
    muster_auto(free) char *text = owned ? doc_print(owned) : NULL;
    if (channel->closing || channel->is_gone) {
        return;
    }
    if (!text) {
        lose(channel, MUSTER_ENOMEM, "out of memory");
        return;
    }
    size_t length = strlen(text);
    text[length++] = '\n'; /* replaces the NUL */
    uv_buf_t bytes = uv_buf_init(text, (unsigned)length);
    int sent = uv_try_write((uv_stream_t *)&channel->pipe, &bytes, 1);
    size_t done = sent > 0 ? (size_t)sent : 0;
    bool full = uv_stream_get_write_queue_size((uv_stream_t *)&channel->pipe) > CHANNEL_QUEUE_MAX;
    if (full || (done < length && queue(channel, text + done, length - done) < 0)) {
        lose(channel, MUSTER_EUNAVAIL, "the other side does not read");
    }
}

/* ---- Life ---- */

static void on_closed(uv_handle_t *handle)
{
    struct channel *channel = handle->data;
    assert(channel->closing && channel->open_handles > 0);
    if (--channel->open_handles == 0) {
        buf_done(&channel->in);
        free(channel);
    }
}

static void close_handles(struct channel *channel)
{
    uv_close((uv_handle_t *)&channel->pipe, on_closed);
    uv_close((uv_handle_t *)&channel->report, on_closed);
}

static void on_shutdown(uv_shutdown_t *shutdown, int status)
{
    (void)status;
    close_handles(shutdown->data);
}

void channel_close(struct channel *channel)
{
    if (!channel || channel->closing) {
        return;
    }
    channel->closing = true;
    channel->shutdown.data = channel;
    uv_read_stop((uv_stream_t *)&channel->pipe);
    if (channel->is_gone ||
        uv_shutdown(&channel->shutdown, (uv_stream_t *)&channel->pipe, on_shutdown) < 0) {
        close_handles(channel);
    }
}

int channel_open(uv_loop_t *loop, int fd, const struct channel_hooks *hooks, void *data,
                 struct channel **ret, struct muster_err *err)
{
    struct channel *channel = calloc(1, sizeof *channel);
    if (!channel) {
        close(fd);
        return err_no_memory(err);
    }
    channel->hooks = *hooks;
    channel->data = data;
    buf_init(&channel->in, CHANNEL_LINE_MAX);
    uv_pipe_init(loop, &channel->pipe, 0);
    uv_idle_init(loop, &channel->report);
    channel->pipe.data = channel->report.data = channel;
    channel->open_handles = 2;
    int r = uv_pipe_open(&channel->pipe, fd);
    r = r < 0 ? r : uv_read_start((uv_stream_t *)&channel->pipe, on_alloc, on_read);
    if (r < 0) {
        channel->closing = true;
        close_handles(channel);
        return muster_fail(err, MUSTER_EOS, "cannot use a connection: %s", uv_strerror(r));
    }
    *ret = channel;
    return 0;
}
