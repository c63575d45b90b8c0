/* Accepted connections. Each sends its hello at its own pace, and then waits for the code that it
 * is meant for.
 *
 * No thread waits for a hello: on a network that loses packets it may come seconds after its
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
    uint16_t index;   /* of the rank that connects */
    uint16_t channel; /* which of the sockets to this host this one is */
    uint64_t generation;
    uint64_t digest; /* hash of the members */
};

struct arrival {
    int fd;
    size_t have_bytes; /* bytes of its hello that have arrived */
    struct hello hello;
};

struct arrivals {
    int epoll_fd; /* readable when arrivals_next has work; -1: not open */
    int num;
    struct arrival of[ARRIVALS_MAX]; /* oldest first; connections for other communicators stay */
};

/* Starts to wait for connections. The listening sockets must not block. Returns 0 or MUSTER_EOS. */
int arrivals_open(struct arrivals *ret, const int *listening, int num, struct muster_err *err);
/* If arrivals_open was never called, epoll_fd must be -1. */
void arrivals_close(struct arrivals *arrivals);

/* Returns the descriptor of the next connection with this generation and digest, which the caller
 * then owns, and *ret. Returns MUSTER_EAGAIN if none has come within slice_ms; part of a hello may
 * have come. */
int arrivals_next(struct arrivals *arrivals, uint64_t generation, uint64_t digest, int slice_ms,
                  struct hello *ret, struct muster_err *err);
/* Closes connections of processes that have left, as far as that is known by now. */
void arrivals_sweep(struct arrivals *arrivals);
