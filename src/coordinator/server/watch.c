/* See watch.h. */
#include "coordinator/server/watch.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

struct server_watch {
    uv_poll_t poll;
    int pidfd;
    void (*died)(void *data);
    void *data;
};

/* A number that was used again meanwhile belongs to a process that lives on: then its death is not
 * seen here, and never seen wrongly while it lives. */
static int open_peer(int fd)
{
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    bool known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid > 0;
    return known ? (int)syscall(SYS_pidfd_open, peer.pid, 0) : -1;
}

static void on_end(uv_poll_t *poll, int status, int events)
{
    struct server_watch *watch = poll->data;
    (void)events;
    uv_poll_stop(poll);
    if (status == 0) {
        watch->died(watch->data);
    }
}

struct server_watch *server_watch_start(uv_loop_t *loop, int socket, void (*died)(void *data),
                                        void *data)
{
    int pidfd = open_peer(socket);
    struct server_watch *watch = pidfd < 0 ? NULL : calloc(1, sizeof *watch);
    if (!watch || uv_poll_init(loop, &watch->poll, pidfd) < 0) {
        free(watch);
        if (pidfd >= 0) {
            close(pidfd);
        }
        return NULL;
    }
    watch->pidfd = pidfd;
    watch->died = died;
    watch->data = data;
    watch->poll.data = watch;
    (void)uv_poll_start(&watch->poll, UV_READABLE, on_end);
    return watch;
}

static void on_closed(uv_handle_t *handle)
{
    struct server_watch *watch = handle->data;
    close(watch->pidfd);
    free(watch);
}

void server_watch_stop(struct server_watch *watch)
{
    if (watch) {
        uv_close((uv_handle_t *)&watch->poll, on_closed);
    }
}
