/* A plain stream each way; see stream.h. */
#include "stream.h"

#include <arpa/inet.h>
#include <errno.h>
#include <mpi.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LOOKS = 200 }; /* so many looks in vain before the processor is released */

static int listen_at(struct sockaddr_in *address)
{
    socklen_t length = sizeof *address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 &&
        (bind(fd, (struct sockaddr *)address, sizeof *address) < 0 || listen(fd, 1) < 0 ||
         getsockname(fd, (struct sockaddr *)address, &length) < 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

int stream_open(int rank, const char *address)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    int listener = -1, fd = -1, on = 1;
    if (inet_pton(AF_INET, address, &at.sin_addr) != 1) {
        return -1;
    }
    if (rank == 0) {
        listener = listen_at(&at);
    }
    MPI_Bcast(&at.sin_port, sizeof at.sin_port, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        close(listener);
    } else {
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof at) < 0) {
            close(fd);
            fd = -1;
        }
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

/* Adds the bytes that the call moved to the sum. Returns 1, 0 to try again, or -1. */
static int moved(ssize_t n, size_t *sum)
{
    if (n > 0) {
        *sum += (size_t)n;
        return 1;
    }
    return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

int stream_swap(int fd, const char *out, char *in, size_t bytes)
{
    size_t sent = 0, received = 0;
    for (int looks = 0; sent < bytes || received < bytes;) {
        int s = 0, r = 0;
        if (sent < bytes) {
            s = moved(send(fd, out + sent, bytes - sent, MSG_DONTWAIT | MSG_NOSIGNAL), &sent);
        }
        if (received < bytes) {
            r = moved(recv(fd, in + received, bytes - received, MSG_DONTWAIT), &received);
        }
        if (s < 0 || r < 0) {
            return -1;
        }
        looks = s || r ? 0 : looks + 1;
        if (looks > LOOKS) {
            short wanted = (short)((sent < bytes ? POLLOUT : 0) | (received < bytes ? POLLIN : 0));
            struct pollfd on = {.fd = fd, .events = wanted};
            (void)poll(&on, 1, -1);
        }
    }
    return 0;
}
