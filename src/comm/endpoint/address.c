/* Names, addresses and sockets at them. Layer: comm; see address.h. */
#include "comm/endpoint/address.h"

#include "comm/system/deadline.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DISCARD_PORT = 9 };

socklen_t address_bytes(const struct address *a)
{
    return a->any.sa_family == AF_INET6 ? sizeof a->six : sizeof a->four;
}

uint16_t address_port(const struct address *a)
{
    return a->any.sa_family == AF_INET6 ? a->six.sin6_port : a->four.sin_port;
}

const char *address_text(const struct address *a, char *ret)
{
    char host[INET6_ADDRSTRLEN + IF_NAMESIZE + 1], port[8];
    if (getnameinfo(&a->any, address_bytes(a), host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
        (void)snprintf(host, sizeof host, "?");
        (void)snprintf(port, sizeof port, "?");
    }
    bool six = a->any.sa_family == AF_INET6;
    (void)snprintf(ret, ADDRESS_TEXT_BYTES, six ? "[%s]:%s" : "%s:%s", host, port);
    return ret;
}

int address_resolve(const char *host, uint16_t port, struct address *ret, const char **ret_reason)
{
    char service[8];
    (void)snprintf(service, sizeof service, "%u", ntohs(port));
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
    int r = getaddrinfo(host, service, &hints, &list);
    if (r != 0) {
        *ret_reason = r == EAI_SYSTEM ? strerror(errno) : gai_strerror(r);
        return 0;
    }
    int num = 0;
    for (struct addrinfo *i = list; i && num < ADDRESS_MAX; i = i->ai_next) {
        if (i->ai_family == AF_INET || i->ai_family == AF_INET6) {
            memset(&ret[num], 0, sizeof ret[num]);
            memcpy(&ret[num++], i->ai_addr, i->ai_addrlen);
        }
    }
    freeaddrinfo(list);
    *ret_reason = "it has neither an IPv4 nor an IPv6 address";
    return num;
}

static bool towards_one(const struct address *there, struct address *ret)
{
    struct address here = {0};
    socklen_t bytes = sizeof here;
    int fd = socket(there->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool found = fd >= 0 && connect(fd, &there->any, address_bytes(there)) == 0 &&
                 getsockname(fd, &here.any, &bytes) == 0;
    if (fd >= 0) {
        close(fd);
    }
    if (found) {
        *ret = here;
    }
    return found;
}

static void set_port(struct address *a, uint16_t port)
{
    if (a->any.sa_family == AF_INET6) {
        a->six.sin6_port = port;
    } else {
        a->four.sin_port = port;
    }
}

bool address_towards(const char *host, struct address *ret)
{
    struct address there[ADDRESS_MAX];
    const char *reason;
    int num = host ? address_resolve(host, htons(DISCARD_PORT), there, &reason) : 0;
    for (int i = 0; i < num; i++) {
        if (towards_one(&there[i], ret)) {
            set_port(ret, 0);
            return true;
        }
    }
    return false;
}

/* Returns how useful this address is for others; 0: not at all. */
static int worth(const struct ifaddrs *i)
{
    if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) || i->ifa_flags & IFF_LOOPBACK) {
        return 0;
    }
    if (i->ifa_addr->sa_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)i->ifa_addr;
        return IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr) ? 1 : 2;
    }
    return i->ifa_addr->sa_family == AF_INET ? 3 : 0;
}

struct address address_of_machine(void)
{
    struct address found = {.four = {.sin_family = AF_INET}};
    found.four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    struct ifaddrs *list;
    if (getifaddrs(&list) < 0) {
        return found;
    }
    int best = 0;
    for (struct ifaddrs *i = list; i; i = i->ifa_next) {
        if (worth(i) > best) {
            best = worth(i);
            bool six = i->ifa_addr->sa_family == AF_INET6;
            memcpy(&found, i->ifa_addr, six ? sizeof found.six : sizeof found.four);
        }
    }
    freeifaddrs(list);
    return found;
}

static int close_failed(int fd)
{
    int failed = errno;
    if (fd >= 0) {
        close(fd);
    }
    errno = failed;
    return -1;
}

int address_listen(const struct address *at)
{
    int on = 1, off = 0;
    int fd = socket(at->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -1;
    }
    if (at->any.sa_family == AF_INET6) { /* [::] takes IPv4 as well */
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    }
    if (address_port(at) != 0) {
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    }
    bool listens = bind(fd, &at->any, address_bytes(at)) == 0 && listen(fd, SOMAXCONN) == 0;
    return listens ? fd : close_failed(fd);
}

/* If a process connects to a port of its own machine where nobody listens, the kernel may give it
 * the same port to connect from. TCP then connects the socket to itself (RFC 9293, simultaneous
 * open). */
bool address_is_self(int fd)
{
    struct address here = {0}, there = {0};
    socklen_t here_bytes = sizeof here, there_bytes = sizeof there;
    if (getsockname(fd, &here.any, &here_bytes) < 0 ||
        getpeername(fd, &there.any, &there_bytes) < 0 ||
        here.any.sa_family != there.any.sa_family || address_port(&here) != address_port(&there)) {
        return false;
    }
    return here.any.sa_family == AF_INET6
               ? IN6_ARE_ADDR_EQUAL(&here.six.sin6_addr, &there.six.sin6_addr)
               : here.any.sa_family == AF_INET &&
                     here.four.sin_addr.s_addr == there.four.sin_addr.s_addr;
}

int address_begin(const struct sockaddr *to, socklen_t bytes)
{
    int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool good = fd >= 0 && (connect(fd, to, bytes) == 0 || errno == EINPROGRESS);
    return good ? fd : close_failed(fd);
}

int address_finish(int fd, int64_t deadline_ns)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int failed = ETIMEDOUT, ready;
    socklen_t size = sizeof failed;
    do { /* a signal ends the wait, but not the connection attempt */
        ready = poll(&p, 1, deadline_ms_left(deadline_ns));
    } while (ready <= 0 && (ready == 0 || errno == EINTR) && deadline_now_ns() < deadline_ns);
    if (ready == 1) {
        (void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &size);
        failed = failed == 0 && address_is_self(fd) ? ECONNREFUSED : failed;
    }
    errno = failed;
    return failed ? -1 : 0;
}

int address_connect(const struct address *to, int64_t deadline_ns)
{
    int fd = address_begin(&to->any, address_bytes(to));
    return fd < 0 || address_finish(fd, deadline_ns) == 0 ? fd : close_failed(fd);
}
