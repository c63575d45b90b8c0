/* The owner's side of a region: a thread that answers readers, piece by piece. It waits for none of
 * them: one that takes its piece slowly may be waiting for another owner.
 *
 * The memory may change while a piece is sent. That is not prevented but found out: the owner hides
 * the region before it writes, and the reader asks for the stamp again at the end. It counts how
 * often the region was shown, for the same version may be shown again.
 *
 * Layer: comm. Memory: struct muster_region. Thread: its own; the stamp is under the mutex.
 */
#include "comm/region/region.h"

#include "comm/system/deadline.h"
#include "comm/system/sized.h"
#include "core/thread.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    MAX_READERS = 2 * MUSTER_MAX_RANKS, /* connections: a reader of a large region has two */
    FULL_MS = 100,                      /* if there was no descriptor, time until the next try */
};

struct reader {
    int fd;
    int64_t moved_ns; /* when the reader last took or sent something */
    struct region_ask ask;
    size_t ask_bytes;
    bool answering;
    struct region_answer answer;
    struct region_place place;
    size_t sent;      /* of the answer and the bytes after it */
    const char *from; /* the bytes that follow; or, if they lie in several pieces, … */
    char *copy;       /* … a copy; REGION_PIECE_BYTES, or NULL */
    uint64_t laid;    /* the region's `laid` when it was asked */
};

struct muster_region {
    struct muster_endpoint *endpoint;
    pid_t owner; /* the process in which the thread runs */
    struct fork_watch fork;
    pthread_t thread;
    int stop_fd; /* readable when the thread must end */
    struct reader readers[MAX_READERS];
    int num_readers;
    pthread_mutex_t memory_mutex; /* guards the layout, and the memory that it describes */
    struct region_layout layout;
    uint64_t laid;         /* how often the layout was set */
    pthread_mutex_t mutex; /* guards the fields that follow */
    bool readable;
    uint64_t shown; /* how often the region was shown */
    uint64_t generation;
    uint64_t version;
};

static struct region_answer stamp(struct muster_region *region)
{
    pthread_mutex_lock(&region->mutex);
    struct region_answer answer = {.magic = REGION_MAGIC,
                                   .shown = region->readable ? region->shown : 0,
                                   .generation = region->generation,
                                   .version = region->version};
    pthread_mutex_unlock(&region->mutex);
    return answer;
}

static const char *find(struct muster_region *region, struct reader *reader)
{
    size_t offset = (size_t)reader->ask.offset, bytes = (size_t)reader->answer.bytes;
    const char *place = region_layout_find(&region->layout, offset, bytes);
    if (!place && bytes > 0) {
        reader->copy = reader->copy ? reader->copy : malloc(REGION_PIECE_BYTES);
        place = reader->copy;
    }
    if (place && place == reader->copy) {
        region_layout_gather(&region->layout, offset, bytes, reader->copy);
    }
    return place;
}

/* Prepares an answer. Returns false if this is not a valid request. */
static bool prepare(struct muster_region *region, struct reader *reader)
{
    const struct region_ask *ask = &reader->ask;
    struct region_answer *answer = &reader->answer;
    pthread_mutex_lock(&region->memory_mutex);
    size_t all = region->layout.bytes;
    bool is_within = ask->offset <= all && ask->bytes <= all - ask->offset;
    bool good = ask->magic == REGION_MAGIC && ask->bytes <= REGION_PIECE_BYTES;
    if (good) {
        *answer = stamp(region);
        answer->all_bytes = all;
        answer->bytes = answer->shown && is_within ? ask->bytes : 0;
        reader->from = find(region, reader);
        reader->laid = region->laid;
        good = reader->from || answer->bytes == 0;
    }
    if (good) {
        answer->checksum = region_checksum(reader->from, (size_t)answer->bytes);
        answer->in_place = ask->in_place && answer->bytes > 0;
        reader->place = (struct region_place){region->owner, (uintptr_t)reader->from};
        reader->answering = true;
        reader->sent = 0;
    }
    pthread_mutex_unlock(&region->memory_mutex);
    return good;
}

static bool would_block(void)
{
    return errno == EAGAIN || errno == EINTR;
}

/* Sends as much as the socket takes, so that the other readers have their turn. Returns false if
 * the reader must be disconnected. */
static bool send_answer(struct reader *reader)
{
    bool in_place = reader->answer.in_place;
    const char *body = in_place ? (const char *)&reader->place : reader->from;
    size_t head = sizeof reader->answer;
    size_t all = head + (in_place ? sizeof reader->place : (size_t)reader->answer.bytes);
    while (reader->sent < all) {
        bool is_head = reader->sent < head;
        const char *from =
            is_head ? (const char *)&reader->answer + reader->sent : body + (reader->sent - head);
        /* The body is sent together with the head: a short body that is sent alone would be kept
         * back by TCP until the head is acknowledged. */
        int more = is_head && all > head ? MSG_MORE : 0;
        ssize_t n =
            send(reader->fd, from, (is_head ? head : all) - reader->sent, MSG_NOSIGNAL | more);
        if (n < 0) {
            return would_block();
        }
        reader->sent += (size_t)n;
        reader->moved_ns = deadline_now_ns();
    }
    reader->answering = false;
    reader->ask_bytes = 0;
    return true;
}

/* Returns false if the pieces have changed meanwhile, because the place that the reader got is then
 * no longer valid. */
static bool answer(struct muster_region *region, struct reader *reader)
{
    pthread_mutex_lock(&region->memory_mutex);
    bool good = reader->laid == region->laid && send_answer(reader);
    pthread_mutex_unlock(&region->memory_mutex);
    return good;
}

static bool hear(struct muster_region *region, struct reader *reader)
{
    ssize_t n = recv(reader->fd, (char *)&reader->ask + reader->ask_bytes,
                     sizeof reader->ask - reader->ask_bytes, 0);
    if (n <= 0) {
        return n < 0 && would_block();
    }
    reader->moved_ns = deadline_now_ns();
    reader->ask_bytes += (size_t)n;
    return reader->ask_bytes < sizeof reader->ask || prepare(region, reader);
}

/* Returns false if the reader must be disconnected. */
static bool serve(struct muster_region *region, struct reader *reader)
{
    bool good = reader->answering || hear(region, reader);
    return good && (!reader->answering || answer(region, reader));
}

/* The reader is taken out first: a child that is forked at this instant must not close a descriptor
 * that gets the same number later. */
static void hang_up(struct muster_region *region, int i)
{
    int fd = region->readers[i].fd;
    free(region->readers[i].copy);
    region->readers[i] = region->readers[--region->num_readers];
    close(fd);
}

/* Makes room for a new reader: it replaces the reader that was idle longest, if that was idle for
 * long. */
static void make_room(struct muster_region *region)
{
    int idle = 0;
    for (int i = 1; i < region->num_readers; i++) {
        idle = region->readers[i].moved_ns < region->readers[idle].moved_ns ? i : idle;
    }
    if (region->num_readers == MAX_READERS &&
        deadline_now_ns() - region->readers[idle].moved_ns > REGION_STALL_MS * INT64_C(1000000)) {
        hang_up(region, idle);
    }
}

/* Returns false if a reader waits to be accepted and there is no descriptor for it. */
static bool welcome(struct muster_region *region)
{
    struct hello hello;
    int fd = arrivals_next(&region->endpoint->arrivals, 0, REGION_DIGEST, 0, &hello, NULL);
    if (fd >= 0) {
        make_room(region);
    }
    if (fd >= 0 && region->num_readers < MAX_READERS) {
        region->readers[region->num_readers] =
            (struct reader){.fd = fd, .moved_ns = deadline_now_ns()};
        atomic_thread_fence(memory_order_release); /* as in hang_up: a reader counts only when it
                                                      is filled in */
        region->num_readers++;
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
            short events = region->readers[i].answering ? POLLOUT : POLLIN;
            fds[2 + i] = (struct pollfd){.fd = region->readers[i].fd, .events = events};
        }
        (void)poll(fds, (nfds_t)num + 2, full ? FULL_MS : -1);
        if (fds[0].revents) {
            return NULL;
        }
        for (int i = num - 1; i >= 0; i--) {
            if (fds[2 + i].revents && !serve(region, &region->readers[i])) {
                hang_up(region, i);
            }
        }
        full = fds[1].revents && !welcome(region);
    }
}

static int start(struct muster_region *region, struct muster_err *err)
{
    region->stop_fd = eventfd(0, EFD_CLOEXEC);
    int r = region->stop_fd < 0 ? errno : thread_start(&region->thread, NULL, run, region);
    return r == 0 ? 0 : muster_fail(err, MUSTER_EOS, "cannot serve a region: %s", strerror(r));
}

/* Closes the connections in a child, so that a reader whose owner dies does not wait for the child.
 */
static void close_own(void *context)
{
    struct muster_region *region = context;
    for (int i = 0; i < region->num_readers; i++) {
        close(region->readers[i].fd);
        free(region->readers[i].copy);
    }
    region->num_readers = 0;
    fork_close(&region->stop_fd);
}

static void release(struct muster_region *region)
{
    fork_forget(&region->fork);
    close_own(region);
    muster_endpoint_close(region->endpoint);
    pthread_mutex_destroy(&region->mutex);
    pthread_mutex_destroy(&region->memory_mutex);
    region_layout_done(&region->layout);
    free(region);
}

int muster_region_open(const char *host, const void *memory, size_t size_bytes,
                       struct muster_region **ret, struct muster_err *err)
{
    int sized = sized_check_err(err);
    if (sized < 0) {
        return sized;
    }
    if (size_bytes > 0 && !memory) {
        return muster_fail(err, MUSTER_EINVAL, "a region of %zu bytes has no memory", size_bytes);
    }
    struct muster_region *region = calloc(1, sizeof *region);
    if (!region) {
        return muster_fail(err, MUSTER_ENOMEM, "no memory for a region");
    }
    region->stop_fd = -1;
    region->owner = getpid();
    region->fork = (struct fork_watch){.forked = close_own, .context = region};
    fork_remember(&region->fork);
    pthread_mutex_init(&region->mutex, NULL);
    pthread_mutex_init(&region->memory_mutex, NULL);
    const struct muster_elastic_piece whole = {(void *)memory, size_bytes};
    int r = region_layout_init(&region->layout, &whole, 1, err);
    r = r < 0 ? r : muster_endpoint_open(host, &region->endpoint, err);
    r = r < 0 ? r : start(region, err);
    if (r < 0) {
        release(region);
        return r;
    }
    *ret = region;
    return 0;
}

int region_set_pieces(struct muster_region *region, const struct muster_elastic_piece *pieces,
                      size_t num_pieces, struct muster_err *err)
{
    struct region_layout next;
    int r = region_layout_init(&next, pieces, num_pieces, err);
    if (r < 0) {
        return r;
    }
    pthread_mutex_lock(&region->memory_mutex);
    struct region_layout before = region->layout;
    region->layout = next;
    region->laid++;
    pthread_mutex_unlock(&region->memory_mutex);
    region_layout_done(&before);
    return 0;
}

void muster_region_set(struct muster_region *region, uint64_t generation, uint64_t version)
{
    pthread_mutex_lock(&region->mutex);
    bool same = region->readable && region->generation == generation && region->version == version;
    region->shown += !same;
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
        return; /* in a forked child the region belongs to the parent */
    }
    uint64_t one = 1;
    (void)!write(region->stop_fd, &one, sizeof one);
    pthread_join(region->thread, NULL);
    release(region);
}
