/* See passing.h. */
#include "process/wire/passing.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int passing_send(int socket_fd, const void *bytes, size_t count, const int *fds, size_t fd_count)
{
    assert(fd_count <= PASSING_FDS_MAX);
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * PASSING_FDS_MAX)] = {0};
    struct iovec part = {(void *)bytes, count};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd_count > 0) {
        header.msg_control = control;
        header.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
        struct cmsghdr *c = CMSG_FIRSTHDR(&header);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
        memcpy(CMSG_DATA(c), fds, sizeof(int) * fd_count);
    }
    ssize_t n = sendmsg(socket_fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
    return n == (ssize_t)count ? 0 : n < 0 ? -errno : -EMSGSIZE;
}

ssize_t passing_receive(int socket_fd, void *bytes, size_t room, int ret_fds[PASSING_FDS_MAX],
                        size_t *ret_fd_count)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * PASSING_FDS_MAX)];
    struct iovec part = {bytes, room};
    struct msghdr header = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = control,
                            .msg_controllen = sizeof control};
    *ret_fd_count = 0;
    ssize_t n = recvmsg(socket_fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0) {
        return -errno;
    }
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&header); c; c = CMSG_NXTHDR(&header, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
            *ret_fd_count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            assert(*ret_fd_count <= PASSING_FDS_MAX);
            memcpy(ret_fds, CMSG_DATA(c), *ret_fd_count * sizeof(int));
        }
    }
    return n;
}

void passing_close(const int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
}

void passing_keep_only(const int *fds, size_t count)
{
    unsigned from = 3;
    for (;;) {
        unsigned next = ~0U;
        for (size_t i = 0; i < count; i++) {
            unsigned fd = (unsigned)fds[i];
            if (fds[i] >= 0 && fd >= from && fd < next) {
                next = fd;
            }
        }
        if (next > from) {
            (void)close_range(from, next == ~0U ? ~0U : next - 1, 0);
        }
        if (next == ~0U) {
            return;
        }
        from = next + 1;
    }
}
