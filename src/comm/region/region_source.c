/* See region_source.h.
 *
 * If it sees the owner's process id, it asks for the address of a piece, and copies the piece out
 * of the owner's memory (process_vm_readv(2)): one copy, where a connection needs two. If that
 * fails, or the checksum is not the owner's, the connection carries this piece and all later ones.
 */
#include "comm/region/region_source.h"

#include "comm/system/deadline.h"
#include "core/size.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { COPY_BYTES = 64 * 1024 };

int region_source_lost(int owner, struct muster_err *err)
{
    muster_fail(err, MUSTER_EPEERDEAD, "owner %d of the region is gone", owner);
    if (err) {
        err->rank = owner;
    }
    return MUSTER_EPEERDEAD;
}

bool region_must_stop(const struct region_thread *thread)
{
    const struct region_reading *reading = thread->reading;
    return atomic_load(&reading->failed) ||
           (thread->is_caller && reading->interrupted && reading->interrupted(reading->context));
}

static int receive(const struct region_thread *thread, const struct region_source *s, void *to,
                   size_t bytes, struct muster_err *err)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = recv(s->fd, (char *)to + done, bytes - done, 0);
        if (n > 0) {
            done += (size_t)n;
            continue;
        }
        if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            return region_source_lost(s->owner, err);
        }
        int64_t left_ms = (thread->reading->deadline_ns - deadline_now_ns()) / 1000000;
        struct pollfd p = {.fd = s->fd, .events = POLLIN};
        if (region_must_stop(thread)) {
            return region_interrupted(err);
        }
        if (left_ms <= 0) {
            return muster_fail(err, MUSTER_ETIMEDOUT, "owner %d did not send its state in time",
                               s->owner);
        }
        (void)poll(&p, 1, left_ms > REGION_SLICE_MS ? REGION_SLICE_MS : (int)left_ms);
    }
    return 0;
}

int region_interrupted(struct muster_err *err)
{
    return muster_fail(err, MUSTER_EINTERRUPTED, "the state of others is read no further");
}

int region_source_ask(struct region_source *s, size_t offset, size_t bytes, struct muster_err *err)
{
    struct region_ask ask = {
        .magic = REGION_MAGIC, .in_place = s->in_place, .offset = offset, .bytes = bytes};
    if (send(s->fd, &ask, sizeof ask, MSG_NOSIGNAL) != (ssize_t)sizeof ask) {
        return region_source_lost(s->owner, err);
    }
    s->offset = offset;
    s->bytes = bytes;
    s->asked = true;
    return 0;
}

/* Whether the answer is what was asked for, and of the right version. */
static int check(const struct region_reading *r, struct region_source *s,
                 const struct region_answer *answer, struct muster_err *err)
{
    if (answer->magic != REGION_MAGIC) {
        return muster_fail(err, MUSTER_EPROTO,
                           "owner %d sent an answer that does not fit the request", s->owner);
    }
    bool again = s->shown && answer->shown != s->shown;
    s->shown = answer->shown;
    if (!answer->shown || again || answer->generation != r->generation ||
        answer->version != r->version) {
        return muster_fail(err, MUSTER_ECONFLICT, "owner %d has moved on from version %llu",
                           s->owner, (unsigned long long)r->version);
    }
    bool fits = answer->all_bytes >= s->offset + s->bytes;
    if (answer->bytes != s->bytes ? !fits : r->exact && answer->all_bytes != r->to.bytes) {
        return muster_fail(err, MUSTER_EMISMATCH,
                           "owner %d has a state of %llu bytes, where %zu are to be read", s->owner,
                           (unsigned long long)answer->all_bytes, r->to.bytes);
    }
    return answer->bytes == s->bytes && answer->in_place <= (s->in_place && s->bytes > 0)
               ? 0
               : muster_fail(err, MUSTER_EPROTO,
                             "owner %d sent an answer that does not fit the request", s->owner);
}

/* Returns where the bytes are put first. */
static char *find_place(struct region_thread *thread, const struct region_source *s)
{
    char *place = region_layout_find(&thread->reading->to, s->offset, s->bytes);
    if (!place && s->bytes > 0) {
        thread->copy = thread->copy ? thread->copy : malloc(REGION_PIECE_BYTES);
        place = thread->copy;
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
        size_t part = size_min(bytes - done, COPY_BYTES);
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
static int take_from_place(const struct region_thread *thread, const struct region_source *s,
                           char *to, uint64_t checksum, struct muster_err *err)
{
    struct region_place place;
    int r = receive(thread, s, &place, sizeof place, err);
    if (r < 0) {
        return r;
    }
    uint64_t sum;
    return copy_from(&place, to, s->bytes, &sum) && sum == checksum ? 0 : MUSTER_EAGAIN;
}

static int take_from_connection(const struct region_thread *thread, const struct region_source *s,
                                char *to, uint64_t checksum, struct muster_err *err)
{
    int r = receive(thread, s, to, s->bytes, err);
    return r < 0 || region_checksum(to, s->bytes) == checksum
               ? r
               : muster_fail(err, MUSTER_ECONFLICT, "owner %d changed its state while it was read",
                             s->owner);
}

/* Takes one answer and the bytes that it announces. Returns MUSTER_EAGAIN if the bytes must be
 * asked for again. */
static int take_answer(struct region_thread *thread, struct region_source *s,
                       struct muster_err *err)
{
    struct region_answer answer;
    s->asked = false;
    int r = receive(thread, s, &answer, sizeof answer, err);
    r = r < 0 ? r : check(thread->reading, s, &answer, err);
    if (r < 0 || s->bytes == 0) {
        return r;
    }
    char *to = find_place(thread, s);
    if (!to) {
        return muster_fail(err, MUSTER_ENOMEM, "no memory to read a region");
    }
    r = answer.in_place ? take_from_place(thread, s, to, answer.checksum, err)
                        : take_from_connection(thread, s, to, answer.checksum, err);
    if (r == 0 && to == thread->copy) {
        region_layout_scatter(&thread->reading->to, s->offset, s->bytes, thread->copy);
    }
    return r;
}

int region_source_take(struct region_thread *thread, struct region_source *s,
                       struct muster_err *err)
{
    int r = take_answer(thread, s, err);
    if (r == MUSTER_EAGAIN) {
        s->in_place = false;
        r = region_source_ask(s, s->offset, s->bytes, err);
        r = r < 0 ? r : take_answer(thread, s, err);
    }
    return r;
}
