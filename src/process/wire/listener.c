/* See listener.h. */
#include "process/wire/listener.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "process/wire/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum { CLIENTS_MAX = 8, BACKLOG = 8 };

#define SOCKET_NAME "supervisor.sock"

struct listener_client {
    struct listener *listener;
    struct channel *channel;
};

struct listener {
    uv_poll_t poll;
    int fd;
    int folder_fd;
    struct listener_hooks hooks;
    void *data;
    struct listener_client *clients[CLIENTS_MAX];
    size_t count;
    bool stopped;
};

void listener_address(int folder_fd, const char *name, struct sockaddr_un *ret)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    (void)snprintf(ret->sun_path, sizeof ret->sun_path, "/proc/self/fd/%d/%s", folder_fd, name);
}

int listener_connect(const char *job_folder, int *ret_fd, struct muster_err *err)
{
    struct sockaddr_un address;
    muster_auto(close) int folder_fd = open(job_folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    listener_address(folder_fd, SOCKET_NAME, &address);
    if (folder_fd < 0 || fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        int why = errno;
        if (fd >= 0) {
            close(fd);
        }
        return muster_fail(err, MUSTER_EUNAVAIL, "no supervisor answers in %s: %s", job_folder,
                           strerror(why));
    }
    *ret_fd = fd;
    return 0;
}

/* ---- Clients ---- */

static void drop(struct listener_client *client)
{
    struct listener *listener = client->listener;
    for (size_t i = 0; i < listener->count; i++) {
        if (listener->clients[i] == client) {
            listener->clients[i] = listener->clients[--listener->count];
            break;
        }
    }
    channel_close(client->channel);
    free(client);
}

static void on_message(void *data, const json_t *message)
{
    struct listener_client *client = data;
    client->listener->hooks.message(client->listener->data, client, message);
}

static void on_gone(void *data, const struct muster_err *err)
{
    struct listener_client *client = data;
    struct listener *listener = client->listener;
    (void)err;
    drop(client);
    listener->hooks.changed(listener->data);
}

int listener_add(struct listener *listener, int fd, struct muster_err *err)
{
    static const struct channel_hooks hooks = {on_message, on_gone};
    struct listener_client *client =
        listener->count < CLIENTS_MAX ? calloc(1, sizeof *client) : NULL;
    if (!client) {
        close(fd);
        return muster_fail(err, MUSTER_EAGAIN, "over %d controllers", CLIENTS_MAX);
    }
    client->listener = listener;
    int r = channel_open(listener->poll.loop, fd, &hooks, client, &client->channel, err);
    if (r < 0) {
        free(client);
        return r;
    }
    listener->clients[listener->count++] = client;
    listener->hooks.changed(listener->data);
    return 0;
}

static void on_connection(uv_poll_t *poll, int status, int events)
{
    struct listener *listener = poll->data;
    (void)status;
    (void)events;
    int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
        (void)listener_add(listener, fd, NULL);
    }
}

size_t listener_client_count(const struct listener *listener)
{
    return listener->count;
}

void listener_answer(struct listener_client *client, json_t *message)
{
    channel_send(client->channel, message);
}

void listener_tell_all(struct listener *listener, const json_t *message)
{
    for (size_t i = 0; i < listener->count; i++) {
        channel_send(listener->clients[i]->channel, json_incref((json_t *)message));
    }
}

/* ---- Life ---- */

static int bind_socket(struct listener *listener, const char *job_folder, struct muster_err *err)
{
    struct sockaddr_un address;
    listener->folder_fd = open(job_folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    listener->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    listener_address(listener->folder_fd, SOCKET_NAME, &address);
    (void)unlinkat(listener->folder_fd, SOCKET_NAME, 0);
    mode_t before = umask(0177);
    bool bound = listener->folder_fd >= 0 && listener->fd >= 0 &&
                 bind(listener->fd, (struct sockaddr *)&address, sizeof address) == 0;
    (void)umask(before);
    if (!bound || listen(listener->fd, BACKLOG) < 0) {
        return muster_fail(err, MUSTER_ECREATE, "cannot listen at %s/%s: %s", job_folder,
                           SOCKET_NAME, strerror(errno));
    }
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void close_descriptors(const struct listener *listener)
{
    if (listener->fd >= 0) {
        close(listener->fd);
    }
    if (listener->folder_fd >= 0) {
        close(listener->folder_fd);
    }
}

int listener_open(uv_loop_t *loop, const char *job_folder, const struct listener_hooks *hooks,
                  void *data, struct listener **ret, struct muster_err *err)
{
    struct listener *listener = calloc(1, sizeof *listener);
    if (!listener) {
        return err_no_memory(err);
    }
    listener->fd = listener->folder_fd = -1;
    listener->hooks = *hooks;
    listener->data = data;
    int r = bind_socket(listener, job_folder, err);
    if (r == 0 && uv_poll_init(loop, &listener->poll, listener->fd) < 0) {
        r = muster_fail(err, MUSTER_EOS, "cannot watch a socket");
    }
    if (r < 0) {
        close_descriptors(listener);
        free(listener);
        return r;
    }
    listener->poll.data = listener;
    (void)uv_poll_start(&listener->poll, UV_READABLE, on_connection);
    *ret = listener;
    return 0;
}

void listener_stop(struct listener *listener)
{
    if (!listener->stopped) {
        listener->stopped = true;
        (void)unlinkat(listener->folder_fd, SOCKET_NAME, 0);
        uv_poll_stop(&listener->poll);
    }
}

void listener_close(struct listener *listener)
{
    listener_stop(listener);
    while (listener->count > 0) {
        drop(listener->clients[0]);
    }
    uv_close((uv_handle_t *)&listener->poll, on_closed); /* before its descriptor is closed */
    close_descriptors(listener);
}
