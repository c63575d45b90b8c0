/* The owner's side of a region: a thread that answers readers, piece by piece.
 *
 * The memory may change while a piece is sent. That is not prevented but found out: the owner hides
 * the region before it writes, and the reader asks for the stamp again at the end.
 *
 * Layer: comm. Memory: struct muster_region. Thread: its own; the stamp is under the mutex.
 */
#include "comm/region.h"

#include "comm/internal.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    MAX_READERS = 64,
    FULL_MS = 100, /* until a descriptor is looked for again when there was none */
};

struct reader {
    int fd;
    struct region_ask ask;
    size_t ask_bytes;
};

struct muster_region {
    const char *memory;
    size_t bytes;
    struct muster_endpoint *endpoint;
    pid_t owner; /* the process in which the thread runs */
    pthread_t thread;
    int stop_fd; /* readable: the thread ends */
    struct reader readers[MAX_READERS];
    int num_readers;
    pthread_mutex_t mutex; /* guards what follows */
    bool readable;
    uint64_t generation;
    uint64_t version;
};

uint64_t region_checksum(const char *data, size_t bytes)
{
    uint64_t lanes[4] = {1, 2, 3, 4};
    size_t at = 0;
    for (; at + sizeof lanes <= bytes; at += sizeof lanes) {
        uint64_t words[4];
        memcpy(words, data + at, sizeof words);
        for (int l = 0; l < 4; l++) {
            lanes[l] = (lanes[l] ^ words[l]) * 0x9e3779b97f4a7c15u;
            lanes[l] ^= lanes[l] >> 32;
        }
    }
    for (; at < bytes; at++) {
        lanes[0] = (lanes[0] ^ (unsigned char)data[at]) * 0x100000001b3u;
    }
    return lanes[0] ^ lanes[1] * 3 ^ lanes[2] * 5 ^ lanes[3] * 7 ^ bytes;
}

static struct region_answer stamp(struct muster_region *region)
{
    pthread_mutex_lock(&region->mutex);
    struct region_answer answer = {.magic = REGION_MAGIC,
                                   .readable = region->readable,
                                   .generation = region->generation,
                                   .version = region->version};
    pthread_mutex_unlock(&region->mutex);
    return answer;
}

static bool send_all(int fd, const void *data, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = send(fd, (const char *)data + done, bytes - done, MSG_NOSIGNAL);
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        if (n > 0) {
            done += (size_t)n;
        } else if ((errno != EAGAIN && errno != EINTR) || poll(&p, 1, REGION_STALL_MS) == 0) {
            return false;
        }
    }
    return true;
}

static bool serve(struct muster_region *region, struct reader *reader)
{
    const struct region_ask *ask = &reader->ask;
    struct region_answer answer = stamp(region);
    if (ask->magic != REGION_MAGIC || ask->bytes > REGION_PIECE_BYTES ||
        ask->offset > region->bytes || ask->bytes > region->bytes - ask->offset) {
        return false;
    }
    answer.bytes = answer.readable ? ask->bytes : 0;
    answer.checksum = region_checksum(region->memory + ask->offset, (size_t)answer.bytes);
    return send_all(reader->fd, &answer, sizeof answer) &&
           send_all(reader->fd, region->memory + ask->offset, (size_t)answer.bytes);
}

/* False: the reader is to be hung up on. */
static bool hear(struct muster_region *region, struct reader *reader)
{
    ssize_t n = recv(reader->fd, (char *)&reader->ask + reader->ask_bytes,
                     sizeof reader->ask - reader->ask_bytes, 0);
    if (n <= 0) {
        return n < 0 && (errno == EAGAIN || errno == EINTR);
    }
    reader->ask_bytes += (size_t)n;
    if (reader->ask_bytes < sizeof reader->ask) {
        return true;
    }
    reader->ask_bytes = 0;
    return serve(region, reader);
}

/* False: someone is at the door, and there is no descriptor for it. */
static bool welcome(struct muster_region *region)
{
    struct hello hello;
    int fd = arrivals_next(&region->endpoint->arrivals, 0, REGION_DIGEST, 0, &hello, NULL);
    if (fd >= 0 && region->num_readers < MAX_READERS) {
        region->readers[region->num_readers++] = (struct reader){.fd = fd};
    } else if (fd >= 0) {
        close(fd);
    }
    return fd != MUSTER_EOS;
}

static void *run(void *context)
{
    struct muster_region *region = context;
    for (bool full = false;;) {
        struct pollfd fds[MAX_READERS + 2] = {
            {.fd = region->stop_fd, .events = POLLIN},
            {.fd = full ? -1 : region->endpoint->arrivals.epoll_fd, .events = POLLIN}};
        int num = region->num_readers;
        for (int i = 0; i < num; i++) {
            fds[2 + i] = (struct pollfd){.fd = region->readers[i].fd, .events = POLLIN};
        }
        (void)poll(fds, (nfds_t)num + 2, full ? FULL_MS : -1);
        if (fds[0].revents) {
            return NULL;
        }
        for (int i = num - 1; i >= 0; i--) {
            if (fds[2 + i].revents && !hear(region, &region->readers[i])) {
                close(region->readers[i].fd);
                region->readers[i] = region->readers[--region->num_readers];
            }
        }
        full = fds[1].revents && !welcome(region);
    }
}

static int start(struct muster_region *region, struct muster_err *err)
{
    region->stop_fd = eventfd(0, EFD_CLOEXEC);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = region->stop_fd < 0 ? errno : pthread_create(&region->thread, NULL, run, region);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc == 0 ? 0 : muster_fail(err, MUSTER_EOS, "cannot serve a region: %s", strerror(rc));
}

static void release(struct muster_region *region)
{
    for (int i = 0; i < region->num_readers; i++) {
        close(region->readers[i].fd);
    }
    if (region->stop_fd >= 0) {
        close(region->stop_fd);
    }
    muster_endpoint_close(region->endpoint);
    pthread_mutex_destroy(&region->mutex);
    free(region);
}

int muster_region_open(const char *host, const void *memory, size_t size_bytes,
                       struct muster_region **ret, struct muster_err *err)
{
    struct muster_region *region = calloc(1, sizeof *region);
    if (!region) {
        return muster_fail(err, MUSTER_ENOMEM, "no memory for a region");
    }
    region->memory = memory;
    region->bytes = size_bytes;
    region->stop_fd = -1;
    region->owner = getpid();
    pthread_mutex_init(&region->mutex, NULL);
    int rc = muster_endpoint_open(host, &region->endpoint, err);
    rc = rc < 0 ? rc : start(region, err);
    if (rc < 0) {
        release(region);
        return rc;
    }
    *ret = region;
    return 0;
}

void muster_region_set(struct muster_region *region, uint64_t generation, uint64_t version)
{
    pthread_mutex_lock(&region->mutex);
    region->readable = true;
    region->generation = generation;
    region->version = version;
    pthread_mutex_unlock(&region->mutex);
}

void muster_region_hide(struct muster_region *region)
{
    pthread_mutex_lock(&region->mutex);
    region->readable = false;
    pthread_mutex_unlock(&region->mutex);
}

void muster_region_member(const struct muster_region *region, struct muster_member *ret)
{
    muster_endpoint_member(region->endpoint, ret);
}

void muster_region_close(struct muster_region *region)
{
    if (!region || region->owner != getpid()) {
        return; /* in a forked child nothing here is ours */
    }
    uint64_t one = 1;
    (void)!write(region->stop_fd, &one, sizeof one);
    pthread_join(region->thread, NULL);
    release(region);
}
