/* A worker by leases listens, so that the coordinator can ask its host whether the process is
 * there: the port of one that has ended refuses. Every connection is closed at once. See leaser.h.
 */
#include "client/leaser.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Writes the address by which this process reaches the coordinator. Returns false if the
 * coordinator is on this host, at a path. */
static bool find_own_host(int fd, char ret[NI_MAXHOST])
{
    struct sockaddr_storage here;
    socklen_t bytes = sizeof here;
    const struct sockaddr *any = (const struct sockaddr *)&here;
    return getsockname(fd, (struct sockaddr *)&here, &bytes) == 0 &&
           (any->sa_family == AF_INET || any->sa_family == AF_INET6) &&
           getnameinfo(any, bytes, ret, NI_MAXHOST, NULL, 0, NI_NUMERICHOST) == 0;
}

void leaser_listener_open(struct muster_shards *s)
{
    char host[NI_MAXHOST];
    if (!s->listener && find_own_host(s->connection.fd, host)) {
        (void)endpoint_open(host, NULL, "auto", &s->listener, NULL);
    }
}

void leaser_listener_close(struct muster_shards *s)
{
    muster_endpoint_close(s->listener);
    s->listener = NULL;
}

int leaser_listener_fd(const struct muster_shards *s)
{
    return s->listener ? s->listener->tcp_fd : -1;
}

bool leaser_listener_answer(struct muster_shards *s)
{
    int fd;
    while ((fd = accept4(s->listener->tcp_fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        close(fd);
    }
    return errno != EMFILE && errno != ENFILE;
}

void leaser_listener_address(const struct muster_shards *s, uint8_t ret[WIRE_ADDRESS_BYTES])
{
    struct muster_member member = {0};
    if (s->listener) {
        muster_endpoint_member(s->listener, &member);
    }
    memcpy(ret, member.bytes, sizeof member.bytes);
}
