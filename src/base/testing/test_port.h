/* A free port, for programs that need a port number in advance or again later. Tests only. */
#pragma once

#include "base/testing/test.h"

#include <netinet/in.h>
#include <sys/socket.h>

/* Returns a port that is free at all addresses of both families. The kernel gives it to no other
 * program, because a socket that does not listen holds it to the end of this program; it is still
 * possible to listen there. */
static inline int test_held_port(void)
{
    struct sockaddr_in6 any = {.sin6_family = AF_INET6};
    socklen_t bytes = sizeof any;
    int on = 1, fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&any, sizeof any), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&any, &bytes), 0);
    return ntohs(any.sin6_port);
}
