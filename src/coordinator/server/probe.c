/* See probe.h. */
#include "coordinator/server/probe.h"

#include "comm/endpoint/endpoint.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct server_probe {
    uv_poll_t poll;
    int fd;
    void (*answered)(void *data, bool refused);
    void *data;
};

static struct member read_member(const uint8_t address[WIRE_ADDRESS_BYTES], bool *ret_good)
{
    struct muster_member bytes;
    _Static_assert(sizeof bytes.bytes == WIRE_ADDRESS_BYTES, "an address is a member");
    memcpy(bytes.bytes, address, sizeof bytes.bytes);
    *ret_good = endpoint_member_ok(&bytes);
    return endpoint_member(&bytes);
}

bool server_probe_may(const uint8_t address[WIRE_ADDRESS_BYTES])
{
    bool good;
    struct in6_addr at;
    const struct member member = read_member(address, &good);
    memcpy(&at, member.address, sizeof at);
    bool loopback = IN6_IS_ADDR_LOOPBACK(&at) ||
                    (IN6_IS_ADDR_V4MAPPED(&at) && member.address[12] == IN_LOOPBACKNET);
    return good && member.port != 0 && !loopback && !IN6_IS_ADDR_UNSPECIFIED(&at);
}

bool server_probe_is_of_peer(const uint8_t address[WIRE_ADDRESS_BYTES], int fd)
{
    bool good;
    const struct member member = read_member(address, &good);
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } there;
    socklen_t bytes = sizeof there;
    struct in6_addr at;
    memcpy(&at, member.address, sizeof at);
    if (!good || getpeername(fd, &there.any, &bytes) < 0) {
        return false;
    }
    return there.any.sa_family == AF_INET6
               ? IN6_ARE_ADDR_EQUAL(&at, &there.six.sin6_addr)
               : there.any.sa_family == AF_INET && IN6_IS_ADDR_V4MAPPED(&at) &&
                     memcmp(member.address + 12, &there.four.sin_addr, 4) == 0;
}

static void on_answer(uv_poll_t *poll, int status, int events)
{
    struct server_probe *probe = poll->data;
    int error = 0;
    socklen_t bytes = sizeof error;
    (void)events;
    (void)status; /* the socket has the error, too */
    uv_poll_stop(poll);
    if (getsockopt(probe->fd, SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 &&
        (error == 0 || error == ECONNREFUSED)) {
        probe->answered(probe->data, error == ECONNREFUSED);
    }
}

struct server_probe *server_probe_start(uv_loop_t *loop, const uint8_t address[WIRE_ADDRESS_BYTES],
                                        void (*answered)(void *data, bool refused), void *data)
{
    bool good;
    const struct member member = read_member(address, &good);
    struct server_probe *probe = good ? calloc(1, sizeof *probe) : NULL;
    int fd = probe ? endpoint_begin(&member, false) : -1;
    if (fd < 0 || uv_poll_init(loop, &probe->poll, fd) < 0) {
        free(probe);
        if (fd >= 0) {
            close(fd);
        }
        return NULL;
    }
    probe->fd = fd;
    probe->answered = answered;
    probe->data = data;
    probe->poll.data = probe;
    (void)uv_poll_start(&probe->poll, UV_WRITABLE, on_answer);
    return probe;
}

static void on_closed(uv_handle_t *handle)
{
    struct server_probe *probe = handle->data;
    close(probe->fd);
    free(probe);
}

void server_probe_stop(struct server_probe *probe)
{
    if (probe) {
        uv_close((uv_handle_t *)&probe->poll, on_closed);
    }
}
