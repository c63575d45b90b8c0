/* See input.h. */
#include "cli/submit/input.h"

#include "base/err.h"
#include "job/annotations.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { PATH_BYTES = 512, PIECE_BYTES = 32 << 10, RETRY_MS = 100, RANK_DIGITS_MAX = 6 };

struct input {
    struct cli *cli;
    char path[PATH_BYTES];
    uv_timer_t retry;   /* runs while there is no connection */
    uv_poll_t source;   /* standard input */
    uv_poll_t *channel; /* the connection; NULL: none */
    int fd;             /* its socket */
    int open_handles;
    bool taken;   /* by the supervisor: bytes that are sent are not lost */
    bool is_file; /* standard input cannot be polled, and need not be */
    bool ended;
    size_t used, sent; /* of piece */
    char piece[PIECE_BYTES];
};

/* ---- What the job says ---- */

static int64_t ranks_of(const json_t *job)
{
    const char *type;
    json_t *replica;
    int64_t count = 0;
    json_object_foreach (doc_at(job, "spec.pytorchReplicaSpecs"), type, replica) {
        count += doc_int(replica, "replicas", 1);
    }
    return count;
}

int input_annotate(json_t *object, const char *rank, struct muster_err *err)
{
    size_t length = strlen(rank);
    if (length == 0 || length > RANK_DIGITS_MAX || strspn(rank, "0123456789") != length) {
        return muster_fail(err, MUSTER_EINVAL, "--stdin: a rank is a number, not '%s'", rank);
    }
    int64_t number = strtol(rank, NULL, 10);
    if (number >= ranks_of(object)) {
        return muster_fail(err, MUSTER_EINVAL, "--stdin %s: the last rank of the job is %lld", rank,
                           (long long)ranks_of(object) - 1);
    }
    char text[24];
    (void)snprintf(text, sizeof text, "%lld", (long long)number);
    json_t *metadata = json_object_get(object, "metadata");
    json_t *notes = json_object_get(metadata, "annotations");
    if (!notes) {
        notes = json_object();
        json_object_set_new(metadata, "annotations", notes);
    }
    return json_object_set_new(notes, JOB_ANNOTATION_STDIN, json_string(text)) == 0
               ? 0
               : err_no_memory(err);
}

/* ---- Passing bytes on ---- */

static void watch(struct input *input);

static void free_channel(uv_handle_t *handle)
{
    free(handle);
}

/* Closes the connection: the supervisor does not run yet, or not any more. */
static void disconnect(struct input *input)
{
    if (input->channel) {
        uv_poll_stop(input->channel);
        uv_close((uv_handle_t *)input->channel, free_channel);
        input->channel = NULL;
        input->taken = false;
        close(input->fd);
    }
}

static void pass_end(const struct input *input)
{
    if (input->ended && input->used == 0 && input->taken) {
        (void)shutdown(input->fd, SHUT_WR);
    }
}

static void read_source(struct input *input)
{
    ssize_t n = read(STDIN_FILENO, input->piece, sizeof input->piece);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
        return;
    }
    input->used = n > 0 ? (size_t)n : 0;
    input->sent = 0;
    input->ended = n <= 0;
    pass_end(input);
}

static void write_channel(struct input *input)
{
    ssize_t n = send(input->fd, input->piece + input->sent, input->used - input->sent,
                     MSG_NOSIGNAL | MSG_DONTWAIT);
    input->sent += n > 0 ? (size_t)n : 0;
    if (input->sent == input->used) {
        input->used = input->sent = 0;
    }
}

static void on_source(uv_poll_t *poll, int status, int events)
{
    struct input *input = poll->data;
    (void)status;
    (void)events;
    if (input->used == 0 && !input->ended) {
        read_source(input);
    }
    watch(input);
}

static void on_channel(uv_poll_t *poll, int status, int events)
{
    struct input *input = poll->data;
    char byte;
    if (!input->taken && recv(input->fd, &byte, 1, MSG_DONTWAIT) == 1) {
        input->taken = true;
        pass_end(input);
    } else if (status < 0 || (events & UV_DISCONNECT)) {
        disconnect(input);
    } else if (!input->taken) {
        return;
    } else if (input->used > 0) {
        write_channel(input);
    } else if (input->is_file && !input->ended) {
        read_source(input);
    }
    watch(input);
}

static int open_channel(struct input *input)
{
    uv_poll_t *channel = calloc(1, sizeof *channel);
    if (!channel ||
        kube_upgrade(input->cli->kube, input->path, "muster-stdin", NULL, &input->fd, NULL) < 0) {
        free(channel);
        return MUSTER_EUNAVAIL;
    }
    if (uv_poll_init(&input->cli->loop, channel, input->fd) < 0) {
        free(channel);
        close(input->fd);
        return MUSTER_EOS;
    }
    channel->data = input;
    input->channel = channel;
    return 0;
}

static void on_retry(uv_timer_t *timer)
{
    struct input *input = timer->data;
    (void)open_channel(input);
    watch(input);
}

/* Waits for what can happen next; one piece at a time is passed on. */
static void watch(struct input *input)
{
    bool empty = input->used == 0;
    if (!input->is_file) {
        if (empty && !input->ended && input->taken) {
            (void)uv_poll_start(&input->source, UV_READABLE, on_source);
        } else {
            (void)uv_poll_stop(&input->source);
        }
    }
    if (!input->channel) {
        (void)uv_timer_start(&input->retry, on_retry, RETRY_MS, 0);
        return;
    }
    bool writes = !empty || (input->is_file && !input->ended);
    int wanted = !input->taken ? UV_READABLE : writes ? UV_WRITABLE : 0;
    (void)uv_poll_start(input->channel, UV_DISCONNECT | wanted, on_channel);
}

/* ---- Start and stop ---- */

static void on_closed(uv_handle_t *handle)
{
    struct input *input = handle->data;
    if (--input->open_handles == 0) {
        free(input);
    }
}

struct input *input_start(struct cli *cli, const char *namespace, const char *job)
{
    struct input *input = calloc(1, sizeof *input);
    if (!input) {
        return NULL;
    }
    input->cli = cli;
    muster_auto(free) char *path =
        kube_muster_path("namespaces", namespace, "jobs", job, "stdin", NULL);
    (void)snprintf(input->path, sizeof input->path, "%s", path ? path : "");
    (void)uv_timer_init(&cli->loop, &input->retry);
    input->retry.data = input;
    input->open_handles = 1;
    input->is_file = uv_poll_init(&cli->loop, &input->source, STDIN_FILENO) < 0;
    if (!input->is_file) {
        input->source.data = input;
        input->open_handles++;
    }
    (void)uv_timer_start(&input->retry, on_retry, 0, 0);
    return input;
}

void input_stop(struct input *input)
{
    if (!input) {
        return;
    }
    disconnect(input);
    uv_close((uv_handle_t *)&input->retry, on_closed);
    if (!input->is_file) {
        uv_close((uv_handle_t *)&input->source, on_closed);
    }
}
