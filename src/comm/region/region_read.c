/* The reader's side of a region: pieces from all owners by turns, one under way at each; then every
 * owner's stamp once more.
 *
 * Of an owner whose process id it sees it asks where a piece is, and copies it out of the owner's
 * memory (process_vm_readv(2)): one copy, where a connection needs two. Where that fails, or does
 * not give what the owner's checksum says, the connection brings this piece and all later ones.
 *
 * Layer: comm. Memory: the caller's. Thread: the caller's.
 */
#include "comm/region/region.h"
#include "comm/state/state.h"
#include "comm/system/deadline.h"
#include "comm/system/sized.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { SLICE_MS = 50, COPY_BYTES = 64 * 1024 };

struct source {
    int fd;
    size_t offset; /* of the piece that was asked for */
    size_t bytes;
    bool asked;
    bool in_place;  /* asks where its pieces are, instead of the bytes */
    uint64_t shown; /* the owner's count when it first answered; 0: it has not */
};

struct reading {
    struct source *sources;
    int num;
    uint64_t generation;
    uint64_t version;
    struct region_layout to;
    char *copy; /* for bytes of several pieces; NULL: not needed so far */
    bool exact; /* the owners must not have more than what is read */
    int64_t deadline_ns;
    int (*interrupted)(void *context);
    void *context;
};

static int lost(int index, struct muster_err *err)
{
    muster_fail(err, MUSTER_EPEERDEAD, "owner %d of the region is gone", index);
    if (err) {
        err->rank = index;
    }
    return MUSTER_EPEERDEAD;
}

static int receive(const struct reading *r, int index, void *to, size_t bytes,
                   struct muster_err *err)
{
    int fd = r->sources[index].fd;
    for (size_t done = 0; done < bytes;) {
        ssize_t n = recv(fd, (char *)to + done, bytes - done, 0);
        if (n > 0) {
            done += (size_t)n;
            continue;
        }
        if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            return lost(index, err);
        }
        int64_t left_ms = (r->deadline_ns - deadline_now_ns()) / 1000000;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (r->interrupted && r->interrupted(r->context)) {
            return muster_fail(err, MUSTER_EINTERRUPTED, "the state of others is read no further");
        }
        if (left_ms <= 0) {
            return muster_fail(err, MUSTER_ETIMEDOUT, "owner %d did not send its state in time",
                               index);
        }
        (void)poll(&p, 1, left_ms > SLICE_MS ? SLICE_MS : (int)left_ms);
    }
    return 0;
}

static int ask(const struct reading *r, int index, size_t offset, size_t bytes,
               struct muster_err *err)
{
    struct source *s = &r->sources[index];
    struct region_ask ask = {
        .magic = REGION_MAGIC, .in_place = s->in_place, .offset = offset, .bytes = bytes};
    if (send(s->fd, &ask, sizeof ask, MSG_NOSIGNAL) != (ssize_t)sizeof ask) {
        return lost(index, err);
    }
    s->offset = offset;
    s->bytes = bytes;
    s->asked = true;
    return 0;
}

/* Whether the answer is what was asked for, and of the right version. */
static int check(const struct reading *r, int index, const struct region_answer *answer,
                 struct muster_err *err)
{
    struct source *s = &r->sources[index];
    if (answer->magic != REGION_MAGIC) {
        return muster_fail(err, MUSTER_EPROTO,
                           "owner %d sent an answer that does not fit the request", index);
    }
    bool again = s->shown && answer->shown != s->shown;
    s->shown = answer->shown;
    if (!answer->shown || again || answer->generation != r->generation ||
        answer->version != r->version) {
        return muster_fail(err, MUSTER_ECONFLICT, "owner %d has moved on from version %llu", index,
                           (unsigned long long)r->version);
    }
    bool fits = answer->all_bytes >= s->offset + s->bytes;
    if (answer->bytes != s->bytes ? !fits : r->exact && answer->all_bytes != r->to.bytes) {
        return muster_fail(err, MUSTER_EMISMATCH,
                           "owner %d has a state of %llu bytes, where %zu are to be read", index,
                           (unsigned long long)answer->all_bytes, r->to.bytes);
    }
    return answer->bytes == s->bytes && answer->in_place <= (s->in_place && s->bytes > 0)
               ? 0
               : muster_fail(err, MUSTER_EPROTO,
                             "owner %d sent an answer that does not fit the request", index);
}

/* Returns where the bytes are put first. */
static char *find_place(struct reading *r, const struct source *s)
{
    char *place = region_layout_find(&r->to, s->offset, s->bytes);
    if (!place && s->bytes > 0) {
        r->copy = r->copy ? r->copy : malloc(REGION_PIECE_BYTES);
        place = r->copy;
    }
    return place;
}

/* Copies from the owner's memory. Returns false if it cannot be read, or if that process has no
 * such memory any more. Copies in parts, so that the checksum finds in the cache what was just
 * copied. */
static bool copy_from(const struct region_place *place, char *to, size_t bytes, uint64_t *ret_sum)
{
    struct region_sum sum = region_sum_start();
    for (size_t done = 0; done < bytes;) {
        size_t part = bytes - done < COPY_BYTES ? bytes - done : COPY_BYTES;
        struct iovec here = {to + done, part};
        struct iovec there = {(void *)(uintptr_t)(place->address + done), part};
        if (process_vm_readv((pid_t)place->pid, &here, 1, &there, 1, 0) != (ssize_t)part) {
            return false;
        }
        region_sum_add(&sum, to + done, part);
        done += part;
    }
    *ret_sum = region_sum_end(&sum);
    return true;
}

/* Returns MUSTER_EAGAIN if the place was of no use. */
static int take_from_place(struct reading *reading, int index, char *to, uint64_t checksum,
                           struct muster_err *err)
{
    size_t bytes = reading->sources[index].bytes;
    struct region_place place;
    int r = receive(reading, index, &place, sizeof place, err);
    if (r < 0) {
        return r;
    }
    uint64_t sum;
    return copy_from(&place, to, bytes, &sum) && sum == checksum ? 0 : MUSTER_EAGAIN;
}

static int take_from_connection(struct reading *reading, int index, char *to, uint64_t checksum,
                                struct muster_err *err)
{
    size_t bytes = reading->sources[index].bytes;
    int r = receive(reading, index, to, bytes, err);
    return r < 0 || region_checksum(to, bytes) == checksum
               ? r
               : muster_fail(err, MUSTER_ECONFLICT, "owner %d changed its state while it was read",
                             index);
}

/* Takes one answer and the bytes that it announces. Returns MUSTER_EAGAIN if the bytes must be
 * asked for again. */
static int take_answer(struct reading *reading, int index, struct muster_err *err)
{
    struct source *s = &reading->sources[index];
    struct region_answer answer;
    s->asked = false;
    int r = receive(reading, index, &answer, sizeof answer, err);
    r = r < 0 ? r : check(reading, index, &answer, err);
    if (r < 0 || s->bytes == 0) {
        return r;
    }
    char *to = find_place(reading, s);
    if (!to) {
        return muster_fail(err, MUSTER_ENOMEM, "no memory to read a region");
    }
    r = answer.in_place ? take_from_place(reading, index, to, answer.checksum, err)
                        : take_from_connection(reading, index, to, answer.checksum, err);
    if (r == 0 && to == reading->copy) {
        region_layout_scatter(&reading->to, s->offset, s->bytes, reading->copy);
    }
    return r;
}

static int take(struct reading *reading, int index, struct muster_err *err)
{
    struct source *s = &reading->sources[index];
    int r = take_answer(reading, index, err);
    if (r == MUSTER_EAGAIN) {
        s->in_place = false;
        r = ask(reading, index, s->offset, s->bytes, err);
        r = r < 0 ? r : take_answer(reading, index, err);
    }
    return r;
}

static int read_pieces(struct reading *reading, struct muster_err *err)
{
    size_t next = 0;
    int r = 0, under_way = 0;
    do {
        for (int i = 0; r == 0 && i < reading->num; i++) {
            if (reading->sources[i].asked) {
                r = take(reading, i, err);
                under_way--;
            }
            if (r == 0 && next < reading->to.bytes) {
                size_t left = reading->to.bytes - next;
                size_t bytes = left < REGION_PIECE_BYTES ? left : REGION_PIECE_BYTES;
                r = ask(reading, i, next, bytes, err);
                next += bytes;
                under_way++;
            }
        }
    } while (r == 0 && under_way > 0);
    return r;
}

/* Asks all owners for their stamp before it waits for the first answer. */
static int confirm(struct reading *reading, struct muster_err *err)
{
    int r = 0;
    for (int i = 0; r == 0 && i < reading->num; i++) {
        r = ask(reading, i, 0, 0, err);
    }
    for (int i = 0; r == 0 && i < reading->num; i++) {
        r = take(reading, i, err);
    }
    return r;
}

static int connect_all(const struct reading *r, const struct muster_member *owners,
                       struct muster_err *err)
{
    struct hello hello = {.magic = HELLO_MAGIC, .digest = REGION_DIGEST};
    for (int i = 0; i < r->num; i++) {
        if (!endpoint_member_ok(&owners[i])) {
            return muster_fail(err, MUSTER_EDATA, "owner %d is not of this version of muster", i);
        }
        struct member owner = endpoint_member(&owners[i]);
        int fd = endpoint_connect(&owner, false, &hello, r->deadline_ns, err);
        if (fd < 0) {
            return fd == MUSTER_EOS ? fd : lost(i, err);
        }
        r->sources[i].fd = fd;
        r->sources[i].in_place = endpoint_sees_process(&owner);
    }
    return 0;
}

static int read_all(struct reading *reading, const struct muster_member *owners,
                    struct muster_err *err)
{
    int r = connect_all(reading, owners, err);
    r = r < 0 ? r : read_pieces(reading, err);
    r = r < 0 ? r : confirm(reading, err);
    for (int i = 0; i < reading->num; i++) {
        if (reading->sources[i].fd >= 0) {
            close(reading->sources[i].fd);
        }
    }
    return r;
}

static int read_region(const struct region_read *read, bool exact, struct muster_err *err)
{
    struct source sources[MUSTER_MAX_RANKS];
    assert(read->num_owners >= 1 && read->num_owners <= MUSTER_MAX_RANKS);
    for (int i = 0; i < read->num_owners; i++) {
        sources[i] = (struct source){.fd = -1};
    }
    struct reading reading = {.sources = sources,
                              .num = read->num_owners,
                              .generation = read->generation,
                              .version = read->version,
                              .exact = exact,
                              .deadline_ns = deadline_after_ms(read->timeout_ms),
                              .interrupted = read->interrupted,
                              .context = read->context};
    int r = region_layout_init(&reading.to, read->pieces, read->num_pieces, err);
    r = r < 0 ? r : read_all(&reading, read->owners, err);
    region_layout_done(&reading.to);
    free(reading.copy);
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
