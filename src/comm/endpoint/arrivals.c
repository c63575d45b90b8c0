/* Accepted connections, and what they are for. Layer: comm; see arrivals.h. */
#include "comm/endpoint/arrivals.h"

#include "comm/system/fork.h"

#include <muster/err.h>

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static const uint64_t listens = UINT64_C(1) << 32; /* a bit in an event's data, next to the
                                                      descriptor */

static bool expect(const struct arrivals *a, int fd, uint64_t data)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = data};
    return epoll_ctl(a->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

int arrivals_open(struct arrivals *ret, const int *listening, int num, struct muster_err *err)
{
    assert(num > 0);
    ret->num = 0;
    ret->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    bool ok = ret->epoll_fd >= 0;
    for (int i = 0; ok && i < num; i++) {
        ok = expect(ret, listening[i], listens | (unsigned)listening[i]);
    }
    return ok ? 0
              : muster_fail(err, MUSTER_EOS, "cannot wait for connections: %s", strerror(errno));
}

void arrivals_close(struct arrivals *a)
{
    while (a->num > 0) {
        fork_close(&a->of[--a->num].fd);
    }
    fork_close(&a->epoll_fd);
}

static bool has_spoken(const struct arrival *arrival)
{
    return arrival->have_bytes == sizeof arrival->hello;
}

static void forget(struct arrivals *a, int i)
{
    assert(i < a->num);
    a->num--;
    memmove(&a->of[i], &a->of[i + 1], (size_t)(a->num - i) * sizeof a->of[0]);
}

/* Another process may hold the descriptor too; then closing it would not remove it from the epoll
 * set. */
static void hang_up(struct arrivals *a, int i)
{
    int fd = a->of[i].fd;
    (void)epoll_ctl(a->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    forget(a, i);
    close(fd);
}

/* Reads the bytes of a hello that have arrived. Returns false if this is not a hello, or none can
 * follow. */
static bool read_hello(struct arrival *arrival)
{
    assert(!has_spoken(arrival));
    char *to = (char *)&arrival->hello + arrival->have_bytes;
    ssize_t n = recv(arrival->fd, to, sizeof arrival->hello - arrival->have_bytes, MSG_DONTWAIT);
    if (n <= 0) {
        return n < 0 && (errno == EAGAIN || errno == EINTR);
    }
    arrival->have_bytes += (size_t)n;
    return !has_spoken(arrival) || arrival->hello.magic == HELLO_MAGIC;
}

/* If all places are taken, the oldest connection that has sent no hello is closed, or else the
 * oldest one. */
static void make_room(struct arrivals *a)
{
    int silent = 0;
    if (a->num < ARRIVALS_MAX) {
        return;
    }
    while (silent < a->num && has_spoken(&a->of[silent])) {
        silent++;
    }
    hang_up(a, silent < a->num ? silent : 0);
}

static int welcome(struct arrivals *a, int listening, struct muster_err *err)
{
    int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        return errno != EMFILE && errno != ENFILE
                   ? 0
                   : muster_fail(err, MUSTER_EOS,
                                 "too many open files: raise the limit (ulimit -n)");
    }
    make_room(a);
    assert(a->num >= 0 && a->num < ARRIVALS_MAX);
    struct arrival *arrival = &a->of[a->num];
    *arrival = (struct arrival){.fd = fd};
    /* A child that is forked at this instant closes the connections that are counted; it must not
     * close the descriptor that was in this place before. */
    atomic_thread_fence(memory_order_release);
    a->num++;
    if (!read_hello(arrival) || (!has_spoken(arrival) && !expect(a, fd, (unsigned)fd))) {
        hang_up(a, a->num - 1);
    }
    return 0;
}

static void hear(struct arrivals *a, int fd)
{
    int i = 0;
    while (i < a->num && a->of[i].fd != fd) {
        i++;
    }
    if (i < a->num && !read_hello(&a->of[i])) {
        hang_up(a, i);
    } else if (i < a->num && has_spoken(&a->of[i])) {
        (void)epoll_ctl(a->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    }
}

static bool has_left(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void arrivals_sweep(struct arrivals *a)
{
    for (int i = 0; i < a->num;) {
        if (has_left(a->of[i].fd)) {
            hang_up(a, i);
        } else {
            i++;
        }
    }
}

static int take(struct arrivals *a, uint64_t generation, uint64_t digest, struct hello *ret)
{
    for (int i = 0; i < a->num;) {
        struct arrival found = a->of[i];
        if (!has_spoken(&found) || found.hello.generation != generation ||
            found.hello.digest != digest) {
            i++;
        } else if (has_left(found.fd)) {
            hang_up(a, i);
        } else {
            forget(a, i);
            *ret = found.hello;
            return found.fd;
        }
    }
    return MUSTER_EAGAIN;
}

int arrivals_next(struct arrivals *a, uint64_t generation, uint64_t digest, int slice_ms,
                  struct hello *ret, struct muster_err *err)
{
    int taken = take(a, generation, digest, ret);
    if (taken >= 0) {
        return taken;
    }
    /* One event at a time: if two connections were heard at once, the second one would not be
     * reported again. */
    struct epoll_event event;
    if (epoll_wait(a->epoll_fd, &event, 1, slice_ms) <= 0) {
        return MUSTER_EAGAIN;
    }
    int fd = (int)(uint32_t)event.data.u64, r = 0;
    if (event.data.u64 & listens) {
        r = welcome(a, fd, err);
    } else {
        hear(a, fd);
    }
    return r < 0 ? r : take(a, generation, digest, ret);
}
