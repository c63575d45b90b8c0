/* The reader's side of a region: reads pieces from all owners by turns, with one under way at each;
 * then asks every owner for its stamp once more.
 *
 * Two threads read a large region, each by its own connections, because a reader needs more
 * processor time for a piece, which it copies and sums, than its owner, which only sums it. A
 * single owner gets two connections, so that it sums one piece while another is copied. With one
 * thread and one connection for each owner, 500 MB took 2.5 times as long from one owner, and 1.6
 * times as long from two.
 *
 * Layer: comm. Memory: the caller's. Thread: the caller's, and one that ends before the read does.
 */
#include "comm/region/region_source.h"
#include "comm/state/state.h"
#include "comm/system/deadline.h"
#include "comm/system/sized.h"
#include "core/size.h"
#include "core/thread.h"

#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { THREADS = 2, LARGE_BYTES = 4 * REGION_PIECE_BYTES };

/* The part of one thread, which reads from the sources first, first + every, and so on. */
struct part {
    struct region_thread thread;
    int first;
    int every;
    int ended_fd; /* readable when the part has ended */
    int r;
    struct muster_err err;
};

/* Asks the source for the next piece, if there is one, and no thread has failed. */
static int ask_next(struct part *part, struct region_source *source, int *under_way)
{
    struct region_reading *reading = part->thread.reading;
    size_t all = reading->to.bytes, offset = atomic_fetch_add(&reading->next, REGION_PIECE_BYTES);
    if (offset >= all || atomic_load(&reading->failed)) {
        return 0;
    }
    (*under_way)++;
    return region_source_ask(source, offset, size_min(all - offset, REGION_PIECE_BYTES),
                             &part->err);
}

/* Ends the read with this part's error, unless another part has failed before. */
static void fail(struct part *part, int r)
{
    int nobody = 0;
    part->r = r;
    (void)atomic_compare_exchange_strong(&part->thread.reading->failed, &nobody, 1 + part->first);
}

/* Reads until no piece is left, or a thread has failed. */
static void read_part(struct part *part)
{
    struct region_reading *reading = part->thread.reading;
    int r = 0, under_way = 0;
    do {
        for (int i = part->first; r == 0 && i < reading->num_sources; i += part->every) {
            struct region_source *source = &reading->sources[i];
            if (source->asked) {
                r = region_source_take(&part->thread, source, &part->err);
                under_way--;
            }
            r = r < 0 ? r : ask_next(part, source, &under_way);
        }
    } while (r == 0 && under_way > 0);
    free(part->thread.copy);
    if (r < 0) {
        fail(part, r);
    }
}

static void *run(void *context)
{
    struct part *part = context;
    uint64_t one = 1;
    read_part(part);
    (void)!write(part->ended_fd, &one, sizeof one);
    return NULL;
}

/* Returns false if the thread cannot be started: then the caller's thread reads all. */
static bool start(struct part *part, pthread_t *ret)
{
    part->ended_fd = eventfd(0, EFD_CLOEXEC);
    if (part->ended_fd < 0) {
        return false;
    }
    bool started = thread_start(ret, NULL, run, part) == 0;
    if (!started) {
        close(part->ended_fd);
    }
    return started;
}

/* Waits until the other thread has ended; meanwhile the user may still interrupt the read. */
static void join(struct part *mine, struct part *other, pthread_t thread)
{
    struct pollfd ended = {.fd = other->ended_fd, .events = POLLIN};
    while (poll(&ended, 1, REGION_SLICE_MS) <= 0) {
        if (!atomic_load(&mine->thread.reading->failed) && region_must_stop(&mine->thread)) {
            fail(mine, region_interrupted(&mine->err));
        }
    }
    pthread_join(thread, NULL);
    close(other->ended_fd);
}

static int read_pieces(struct region_reading *reading, struct muster_err *err)
{
    struct part parts[THREADS];
    for (int i = 0; i < THREADS; i++) {
        parts[i] = (struct part){.thread = {reading, i == 0, NULL},
                                 .first = i,
                                 .every = THREADS,
                                 .err = MUSTER_ERR_INIT};
    }
    pthread_t thread;
    bool both = reading->to.bytes >= LARGE_BYTES && start(&parts[1], &thread);
    parts[0].every = both ? THREADS : 1;
    read_part(&parts[0]);
    if (both) {
        join(&parts[0], &parts[1], thread);
    }
    int failed = atomic_load(&reading->failed);
    if (failed == 0) {
        return 0;
    }
    const struct part *first = &parts[failed - 1];
    muster_fail(err, first->r, "%s", first->err.text);
    if (err) {
        err->rank = first->err.rank;
    }
    return first->r;
}

/* Asks all owners for their stamp before it waits for the first answer. */
static int confirm(struct region_reading *reading, struct muster_err *err)
{
    struct region_thread mine = {reading, true, NULL};
    int r = 0;
    for (int i = 0; r == 0 && i < reading->num_sources; i++) {
        r = region_source_ask(&reading->sources[i], 0, 0, err);
    }
    for (int i = 0; r == 0 && i < reading->num_sources; i++) {
        r = region_source_take(&mine, &reading->sources[i], err);
    }
    return r;
}

static bool must_stop(const void *thread)
{
    return region_must_stop(thread);
}

static int connect_source(const struct region_thread *thread, struct region_source *source,
                          const struct muster_member *owner, struct muster_err *err)
{
    const struct hello hello = {.magic = HELLO_MAGIC, .digest = REGION_DIGEST};
    const struct endpoint_wait wait = {thread->reading->deadline_ns, must_stop, thread};
    if (!endpoint_member_ok(owner)) {
        return muster_fail(err, MUSTER_EDATA, "owner %d is not of this version of muster",
                           source->owner);
    }
    struct member member = endpoint_member(owner);
    int fd = endpoint_connect(&member, false, &hello, &wait, err);
    if (fd == MUSTER_EINTERRUPTED) {
        return region_interrupted(err);
    }
    if (fd < 0) {
        return fd == MUSTER_EOS ? fd : region_source_lost(source->owner, err);
    }
    source->fd = fd;
    source->in_place = endpoint_sees_process(&member);
    return 0;
}

static int read_all(struct region_reading *reading, const struct muster_member *owners,
                    struct muster_err *err)
{
    const struct region_thread mine = {reading, true, NULL};
    int r = 0;
    for (int i = 0; r == 0 && i < reading->num_sources; i++) {
        struct region_source *source = &reading->sources[i];
        r = connect_source(&mine, source, &owners[source->owner], err);
    }
    r = r < 0 ? r : read_pieces(reading, err);
    r = r < 0 ? r : confirm(reading, err);
    for (int i = 0; i < reading->num_sources; i++) {
        if (reading->sources[i].fd >= 0) {
            close(reading->sources[i].fd);
        }
    }
    return r;
}

static int read_region(const struct region_read *read, bool exact, struct muster_err *err)
{
    struct region_source sources[MUSTER_MAX_RANKS];
    struct region_reading reading = {.sources = sources,
                                     .generation = read->generation,
                                     .version = read->version,
                                     .exact = exact,
                                     .deadline_ns = deadline_after_ms(read->timeout_ms),
                                     .interrupted = read->interrupted,
                                     .context = read->context};
    assert(read->num_owners >= 1 && read->num_owners <= MUSTER_MAX_RANKS);
    int r = region_layout_init(&reading.to, read->pieces, read->num_pieces, err);
    int least = reading.to.bytes >= LARGE_BYTES ? THREADS : 1;
    reading.num_sources = read->num_owners < least ? least : read->num_owners;
    for (int i = 0; i < reading.num_sources; i++) {
        sources[i] = (struct region_source){.fd = -1, .owner = i % read->num_owners};
    }
    r = r < 0 ? r : read_all(&reading, read->owners, err);
    region_layout_done(&reading.to);
    return r;
}

int region_read_pieces(const struct region_read *read, struct muster_err *err)
{
    return read_region(read, true, err);
}

int muster_region_read(const struct muster_member *owners, int num_owners, uint64_t generation,
                       uint64_t version, void *to, size_t size_bytes, int64_t timeout_ms,
                       struct muster_err *err)
{
    int reading = sized_check_err(err);
    if (reading < 0) {
        return reading;
    }
    if (num_owners < 1 || num_owners > MUSTER_MAX_RANKS || (size_bytes > 0 && !to)) {
        return muster_fail(err, MUSTER_EINVAL, "a region is read from 1 to %d owners",
                           MUSTER_MAX_RANKS);
    }
    const struct muster_elastic_piece whole = {to, size_bytes};
    const struct region_read read = {.owners = owners,
                                     .num_owners = num_owners,
                                     .generation = generation,
                                     .version = version,
                                     .pieces = &whole,
                                     .num_pieces = 1,
                                     .timeout_ms = timeout_ms};
    return read_region(&read, false, err);
}
