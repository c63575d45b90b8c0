/* Sockets at which a process can be reached to form communicators: a Unix socket for its own host,
 * a TCP socket for other hosts.
 *
 * Layer: comm. Memory: struct muster_endpoint owns its sockets. Thread: one at a time.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <muster/comm.h>

#include "comm/endpoint/arrivals.h"
#include "comm/system/fork.h"

/* The contents of struct muster_member. Bytes from elsewhere: check with endpoint_member_ok. */
struct member {
    char magic[8];
    unsigned char incarnation[16]; /* random: also the name of the Unix socket */
    unsigned char host[16];        /* equal on processes that can pass descriptors to each other */
    uint64_t pid_space;            /* processes with equal ones see each other's process ids */
    unsigned char address[16];     /* IPv6; of IPv4 the mapped one */
    uint32_t scope;                /* of a link-local address, as its own host numbers it */
    uint16_t port;                 /* network order */
    uint16_t zero;
};

struct muster_endpoint {
    int unix_fd;
    int tcp_fd;
    struct member self;
    struct arrivals arrivals;
    struct fork_watch fork; /* in a child nothing is open */
    /* Set by muster_endpoint_cancel, from any thread: 1 + the highest generation. */
    _Atomic uint64_t cancelled;
};

/* towards: a host that others use to meet, by which our address is found; may be NULL. transport:
 * NULL: as the environment says. */
int endpoint_open(const char *host, const char *towards, const char *transport,
                  struct muster_endpoint **ret, struct muster_err *err);

bool endpoint_member_ok(const struct muster_member *member);
/* A copy: the bytes may not be aligned. */
struct member endpoint_member(const struct muster_member *member);
/* Is that member a process of this host whose process id is the one that this process sees? */
bool endpoint_sees_process(const struct member *member);

/* Begins to connect to a member: a descriptor, which can be written to as soon as it is known
 * whether it is connected; or -1 and errno. EAGAIN: its backlog is full. */
int endpoint_begin(const struct member *member, bool local);
/* Says hello on a descriptor of endpoint_begin that can be written to. The descriptor, or negative;
 * then it is closed. */
int endpoint_greet(int fd, const struct hello *hello, struct muster_err *err);
/* Maps errno: MUSTER_EOS when there is no descriptor, MUSTER_ETIMEDOUT when the member's machine
 * said nothing, else MUSTER_EUNAVAIL. */
int endpoint_fail(bool local, struct muster_err *err);

/* Both at once, by the deadline. */
int endpoint_connect(const struct member *member, bool local, const struct hello *hello,
                     int64_t deadline_ns, struct muster_err *err);

static inline bool endpoint_is_cancelled(struct muster_endpoint *endpoint, uint64_t generation)
{
    uint64_t end = atomic_load(&endpoint->cancelled);
    return generation < end || end == UINT64_MAX;
}

/* Hands a descriptor, of shared memory, over to a member of this host. */
int endpoint_pass(int to, int fd, struct muster_err *err);
/* What another handed over: the descriptor, or negative; MUSTER_EAGAIN: nothing has come yet. */
int endpoint_receive(int from, struct muster_err *err);
