/* See handover.h. Datagrams: one is whole, and nobody has to be accepted. */
#include "process/supervisor/handover.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "process/wire/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define SOCKET_NAME "handover.sock"

struct handover {
    uv_poll_t poll;
    int fd;
    int folder_fd;
    handover_hook hook;
    void *data;
};

static void on_packet(uv_poll_t *poll, int status, int events)
{
    struct handover *handover = poll->data;
    struct handover_packet packet;
    int fds[PASSING_FDS_MAX];
    size_t count = 0;
    (void)status;
    (void)events;
    ssize_t n = passing_receive(handover->fd, &packet, sizeof packet, fds, &count);
    if (n != (ssize_t)sizeof packet || !memchr(packet.id, '\0', sizeof packet.id)) {
        passing_close(fds, count);
        return;
    }
    handover->hook(handover->data, &packet, fds, count);
}

static int bind_socket(struct handover *handover, const char *job_folder, struct muster_err *err)
{
    struct sockaddr_un address;
    handover->folder_fd = open(job_folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    handover->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    listener_address(handover->folder_fd, SOCKET_NAME, &address);
    (void)unlinkat(handover->folder_fd, SOCKET_NAME, 0);
    mode_t before = umask(0177);
    bool bound = handover->folder_fd >= 0 && handover->fd >= 0 &&
                 bind(handover->fd, (struct sockaddr *)&address, sizeof address) == 0;
    (void)umask(before);
    return bound ? 0
                 : muster_fail(err, MUSTER_ECREATE, "cannot make %s/%s: %s", job_folder,
                               SOCKET_NAME, strerror(errno));
}

static void free_handover(struct handover *handover)
{
    const int fds[] = {handover->fd, handover->folder_fd};
    passing_close(fds, 2);
    free(handover);
}

static void on_closed(uv_handle_t *handle)
{
    free_handover(handle->data);
}

int handover_open(uv_loop_t *loop, const char *job_folder, handover_hook hook, void *data,
                  struct handover **ret, struct muster_err *err)
{
    struct handover *handover = calloc(1, sizeof *handover);
    if (!handover) {
        return err_no_memory(err);
    }
    handover->hook = hook;
    handover->data = data;
    int r = bind_socket(handover, job_folder, err);
    if (r == 0 && uv_poll_init(loop, &handover->poll, handover->fd) < 0) {
        r = muster_fail(err, MUSTER_EOS, "cannot watch a socket");
    }
    if (r < 0) {
        free_handover(handover);
        return r;
    }
    handover->poll.data = handover;
    (void)uv_poll_start(&handover->poll, UV_READABLE, on_packet);
    *ret = handover;
    return 0;
}

void handover_close(struct handover *handover)
{
    if (handover) {
        (void)unlinkat(handover->folder_fd, SOCKET_NAME, 0);
        uv_close((uv_handle_t *)&handover->poll, on_closed);
    }
}

int handover_send(const char *job_folder, const struct handover_packet *packet, const int *fds,
                  size_t count, struct muster_err *err)
{
    struct sockaddr_un address;
    muster_auto(close) int folder_fd = open(job_folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    muster_auto(close) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    listener_address(folder_fd, SOCKET_NAME, &address);
    if (folder_fd < 0 || fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        return muster_fail(err, MUSTER_EUNAVAIL, "no supervisor answers in %s: %s", job_folder,
                           strerror(errno));
    }
    int r = passing_send(fd, packet, sizeof *packet, fds, count);
    return r == 0 ? 0
                  : muster_fail(err, MUSTER_EUNAVAIL, "the supervisor in %s takes nothing: %s",
                                job_folder, strerror(-r));
}
