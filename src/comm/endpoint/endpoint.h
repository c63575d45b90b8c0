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

/* The contents of struct muster_member. Bytes that come from others must be checked with
 * endpoint_member_ok. */
struct member {
    char magic[8];
    unsigned char incarnation[16]; /* random; it is also the name of the Unix socket */
    unsigned char host[16];        /* equal on processes that can pass descriptors to each other */
    uint64_t pid_space;            /* processes with equal values see each other's process ids */
    unsigned char address[16];     /* IPv6, or IPv4 as a mapped address */
    uint32_t scope;                /* scope of a link-local address, as its own host numbers it */
    uint16_t port;                 /* network order */
    uint16_t zero;
};

struct muster_endpoint {
    int unix_fd;
    int tcp_fd;
    struct member self;
    struct arrivals arrivals;
    struct fork_watch fork; /* closes everything in a child */
    /* Set by muster_endpoint_cancel, from any thread, to 1 + the highest cancelled generation. */
    _Atomic uint64_t cancelled;
};

/* towards: a host that others use to meet, by which our address is found; may be NULL. transport:
 * NULL means as the environment says. */
int endpoint_open(const char *host, const char *towards, const char *transport,
                  struct muster_endpoint **ret, struct muster_err *err);

bool endpoint_member_ok(const struct muster_member *member);
/* Returns a copy, because the bytes may not be aligned. */
struct member endpoint_member(const struct muster_member *member);
/* Whether that member is a process of this host whose process id is the one that this process sees.
 */
bool endpoint_sees_process(const struct member *member);

/* Begins to connect to a member. Returns a descriptor, which becomes writable when it is known
 * whether it is connected; or -1 and errno. EAGAIN: the member's backlog is full. */
int endpoint_begin(const struct member *member, bool local);
/* Says hello on a descriptor of endpoint_begin that is writable. Returns the descriptor, or closes
 * it and returns a negative code. */
int endpoint_greet(int fd, const struct hello *hello, struct muster_err *err);
/* Maps errno to a code: MUSTER_EOS if there is no descriptor, MUSTER_ETIMEDOUT if the member's
 * machine did not answer, else MUSTER_EUNAVAIL. */
int endpoint_fail(bool local, struct muster_err *err);

/* How long to wait. must_stop may be NULL; it is asked again and again meanwhile. */
struct endpoint_wait {
    int64_t deadline_ns;
    bool (*must_stop)(const void *context);
    const void *context;
};

/* Connects and says hello. MUSTER_EINTERRUPTED: must_stop has returned true. */
int endpoint_connect(const struct member *member, bool local, const struct hello *hello,
                     const struct endpoint_wait *wait, struct muster_err *err);

static inline bool endpoint_is_cancelled(struct muster_endpoint *endpoint, uint64_t generation)
{
    uint64_t end = atomic_load(&endpoint->cancelled);
    return generation < end || end == UINT64_MAX;
}

/* Passes a descriptor of shared memory to a member of this host. */
int endpoint_pass(int to, int fd, struct muster_err *err);
/* Returns the descriptor that another member passed, or a negative code; MUSTER_EAGAIN: nothing has
 * come yet. */
int endpoint_receive(int from, struct muster_err *err);
