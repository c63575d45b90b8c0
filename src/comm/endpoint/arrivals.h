/* Accepted connections. Each sends its hello at its own pace, and then waits for the code that it
 * is meant for.
 *
 * Nobody waits for a hello: on a network that loses packets it may come seconds after its
 * connection, and a stranger never sends one.
 *
 * Layer: comm. Memory: struct arrivals owns its descriptors, not the listening ones. Thread: one at
 * a time.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct muster_err;

enum { HELLO_MAGIC = 0x6d757374, ARRIVALS_MAX = 512 };

/* The first bytes on each connection. */
struct hello {
    uint32_t magic;
    uint16_t index;   /* of the one who connects */
    uint16_t channel; /* which of the sockets to this host this is */
    uint64_t generation;
    uint64_t digest; /* of the members */
};

struct arrival {
    int fd;
    size_t have_bytes; /* of its hello */
    struct hello hello;
};

struct arrivals {
    int epoll_fd; /* readable when arrivals_next has something to do; -1: not open */
    int num;
    struct arrival of[ARRIVALS_MAX]; /* oldest first; those for other communicators stay */
};

/* The listening sockets do not block. MUSTER_EOS. */
int arrivals_open(struct arrivals *ret, const int *listening, int num, struct muster_err *err);
/* What arrivals_open never saw must have an epoll_fd of -1. */
void arrivals_close(struct arrivals *arrivals);

/* The next connection with this generation and digest: its descriptor, the caller's from now on,
 * and *ret. MUSTER_EAGAIN: none within slice_ms; some of a hello may have come. */
int arrivals_next(struct arrivals *arrivals, uint64_t generation, uint64_t digest, int slice_ms,
                  struct hello *ret, struct muster_err *err);
/* Closes connections of processes that have left, as far as that is known by now. */
void arrivals_sweep(struct arrivals *arrivals);
