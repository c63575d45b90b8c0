/* A worker by leases: its thread, the connection, and the coordinator's messages. See leaser.h. A
 * connection begins with HELLO and ENROLL; one that fails is made again, first at once, then after
 * delays that grow from 10 ms to 150 ms. */
#include "client/leaser.h"

#include "client/worker.h"
#include "core/thread.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    GREETING_MS = 5000, /* until the connection is up, or it is made again */
    FIRST_PAUSE_MS = 10,
    LAST_PAUSE_MS = 150,
    PROGRESS_MS = 1000,
    FLUSH_MS = 1000,
    NS_PER_MS = 1000000,
};

struct times {
    bool listener_waits; /* no descriptor was free for a connection: until the next turn */
    int64_t retry_ns;
    int64_t greeted_ns;
    int64_t progress_ns;
    int pause_ms;
};

static int64_t later(int64_t now_ns, int64_t ms)
{
    return now_ns + ms * NS_PER_MS;
}

/* ---- Messages from the coordinator ---- */

static int unexpected(const struct wire_message *m, struct muster_err *err)
{
    return muster_fail(err, MUSTER_EPROTO, "the coordinator sent %s out of turn",
                       wire_kind_name(m->kind));
}

static int welcomed(struct muster_shards *s, const struct wire_message *m, struct muster_err *err)
{
    if (m->kind != WIRE_WELCOME) {
        return unexpected(m, err);
    }
    if (m->term < s->term) {
        return muster_fail(err, MUSTER_EUNAVAIL, "a coordinator of an older term answers");
    }
    s->term = m->term;
    s->phase = LEASER_ENROLLING;
    leaser_listener_open(s);
    leaser_say_enroll(s);
    return 0;
}

static int enrolled(struct muster_shards *s, const struct wire_message *m, struct muster_err *err)
{
    if (m->kind != WIRE_DATASET) {
        return unexpected(m, err);
    }
    s->number = m->dataset.number;
    s->enrolled = true;
    s->phase = LEASER_UP;
    leaser_say_again(s);
    return 0;
}

static bool are_of_this_dataset(const struct muster_shards *s, const struct wire_ranges *ranges)
{
    for (uint32_t i = 0; i < ranges->count; i++) {
        struct shard_range range = ranges->list[i];
        if (range.dataset != s->number || range.epoch >= s->options.epochs ||
            shard_range_end(range) > s->options.records) {
            return false;
        }
    }
    return true;
}

static int leased(struct muster_shards *s, const struct wire_leased *told, struct muster_err *err)
{
    if (!are_of_this_dataset(s, &told->ranges)) {
        return muster_fail(err, MUSTER_EPROTO,
                           "the coordinator leased records that the data set does not have");
    }
    if (told->all) {
        return holdings_grant_unknown(&s->holdings, &told->ranges, told->sequence, err);
    }
    s->asked = false;
    s->none_now = told->ranges.count == 0 && !told->ended;
    if (told->ended) {
        s->ended = true;
        s->left_out = told->left_out;
        memcpy(s->sums, told->sums.list, told->sums.count * sizeof *told->sums.list);
    }
    return holdings_grant(&s->holdings, &told->ranges, err);
}

static void copy_ranges(const struct wire_ranges *from, struct muster_shards_range *to)
{
    for (uint32_t i = 0; i < from->count; i++) {
        to[i] = (struct muster_shards_range){from->list[i].first, from->list[i].count};
    }
}

static int positioned(struct muster_shards *s, const struct wire_to_do *told,
                      struct muster_err *err)
{
    size_t count = (size_t)told->ranges.count + told->held.count;
    struct muster_shards_range *ranges = calloc(count + 1, sizeof *ranges);
    if (!ranges) {
        return muster_fail(err, MUSTER_ENOMEM, "no memory for what is to do");
    }
    copy_ranges(&told->ranges, ranges);
    copy_ranges(&told->held, ranges + told->ranges.count);
    free(s->position.ranges);
    s->position = (struct leaser_position){.ranges = ranges,
                                           .epoch = told->epoch,
                                           .to_do_count = told->ranges.count,
                                           .held_count = told->held.count,
                                           .begun = told->begin};
    s->wants_position = false;
    return 0;
}

static int hear(struct muster_shards *s, const struct wire_message *m, struct muster_err *err)
{
    if (m->kind == WIRE_REFUSED) {
        leaser_fail(s, s->phase == LEASER_GREETING ? MUSTER_EUNAUTH : MUSTER_ECONFLICT,
                    "the coordinator refused this worker: %.*s", (int)m->refused.why.count,
                    m->refused.why.bytes);
        return 0;
    }
    if (m->kind == WIRE_EXPELLED && m->expelled.reason == RENDEZVOUS_FAILED) {
        leaser_fail(s, MUSTER_EFAILED, "the job has failed: %.*s", (int)m->expelled.why.count,
                    m->expelled.why.bytes);
        return 0;
    }
    if (m->kind == WIRE_EXPELLED) {
        leaser_fail(s, MUSTER_EGONE, "this worker has no leases any more: %.*s",
                    (int)m->expelled.why.count, m->expelled.why.bytes);
        return 0;
    }
    if (s->phase == LEASER_GREETING) {
        return welcomed(s, m, err);
    }
    if (s->phase == LEASER_ENROLLING) {
        return enrolled(s, m, err);
    }
    switch ((int)m->kind) {
    case WIRE_LEASED: return leased(s, &m->leased, err);
    case WIRE_TO_DO: return positioned(s, &m->to_do, err);
    case WIRE_RECEIPT:
        holdings_receipt(&s->holdings, m->receipt.sequence);
        leaser_say_done(s);
        return 0;
    default: return unexpected(m, err);
    }
}

/* ---- The connection ---- */

static void drop(struct muster_shards *s, struct times *t, const struct muster_err *err)
{
    connection_close(&s->connection);
    if (err->code < 0 && !s->failed) {
        s->why = *err;
    }
    t->pause_ms = s->phase == LEASER_UP ? 0 : t->pause_ms;
    s->phase = LEASER_DOWN;
    t->retry_ns = later(worker_now_ns(), t->pause_ms);
    t->pause_ms = t->pause_ms == 0                  ? FIRST_PAUSE_MS
                  : t->pause_ms * 2 < LAST_PAUSE_MS ? t->pause_ms * 2
                                                    : LAST_PAUSE_MS;
}

/* Once the job is done, no record is left. */
static void note_done(struct muster_shards *s, const struct muster_err *err)
{
    if (s->enrolled && holdings_all_durable(&s->holdings) && s->holdings.working == 0) {
        s->ended = true;
    } else {
        leaser_fail(s, MUSTER_EGONE, "%s", err->text);
    }
}

/* Connects without the mutex: the look-up of the coordinator's name may take long, and the user's
 * thread must not wait for it. No other thread uses the connection while it is down. */
static void connect_anew(struct muster_shards *s, struct times *t)
{
    struct muster_err err = MUSTER_ERR_INIT;
    pthread_mutex_unlock(&s->mutex);
    int r = connection_open(&s->connection, s->coordinator, &err);
    pthread_mutex_lock(&s->mutex);
    t->greeted_ns = worker_now_ns();
    if (r == MUSTER_EGONE) {
        note_done(s, &err);
    } else if (r == MUSTER_EFAILED) {
        leaser_fail(s, r, "%s", err.text);
    }
    if (r < 0) {
        drop(s, t, &err);
        return;
    }
    s->phase = LEASER_GREETING;
    leaser_say_hello(s);
}

static void move(struct muster_shards *s, struct times *t)
{
    struct muster_err err = MUSTER_ERR_INIT;
    struct wire_message message;
    int moved = connection_move(&s->connection, &err), r = 0;
    bool more = true; /* messages that came before the end of the connection count */
    while (r == 0 && more && s->connection.fd >= 0 && !s->failed) {
        r = connection_next(&s->connection, &message, moved < 0 ? NULL : &err);
        more = r == 1;
        r = more ? hear(s, &message, &err) : r;
    }
    if (r < 0 || moved < 0 || s->connection.fd < 0) {
        drop(s, t, &err);
    }
    (void)pthread_cond_broadcast(&s->changed);
}

/* ---- The thread ---- */

/* Does what is due; returns how long until the next thing is due. */
static int tend(struct muster_shards *s, struct times *t)
{
    struct muster_err err = MUSTER_ERR_INIT;
    int64_t now = worker_now_ns(), next = later(now, PROGRESS_MS);
    if (s->connection.fd < 0 && s->phase != LEASER_DOWN) {
        drop(s, t, &s->why); /* it was closed when something had to be sent */
    }
    bool goes_on = !s->failed && !(s->ended && s->phase == LEASER_DOWN);
    if (s->phase == LEASER_DOWN && goes_on && now >= t->retry_ns) {
        connect_anew(s, t);
    }
    if (s->phase == LEASER_DOWN) {
        next = goes_on ? t->retry_ns : next;
    } else if (s->phase != LEASER_UP && now > later(t->greeted_ns, GREETING_MS)) {
        muster_fail(&err, MUSTER_ETIMEDOUT, "the coordinator does not answer");
        drop(s, t, &err);
    } else if (s->phase == LEASER_UP && now >= t->progress_ns) {
        t->progress_ns = later(now, PROGRESS_MS);
        leaser_say_progress(s);
    }
    int64_t left_ms = (next - now) / NS_PER_MS + 1;
    return left_ms < 0 ? 0 : (int)left_ms;
}

static void *run(void *context)
{
    struct muster_shards *s = context;
    struct times t = {0};
    pthread_mutex_lock(&s->mutex);
    while (!s->stop) {
        int wait_ms = tend(s, &t);
        struct pollfd fds[] = {
            {.fd = s->wake_fd, .events = POLLIN},
            {.fd = s->connection.fd, .events = connection_events(&s->connection)},
            {.fd = t.listener_waits ? -1 : leaser_listener_fd(s), .events = POLLIN}};
        pthread_mutex_unlock(&s->mutex);
        (void)poll(fds, 3, wait_ms);
        uint64_t rung;
        if (fds[0].revents) {
            (void)!read(s->wake_fd, &rung, sizeof rung);
        }
        t.listener_waits = fds[2].revents && !leaser_listener_answer(s);
        pthread_mutex_lock(&s->mutex);
        if (s->connection.fd >= 0) {
            move(s, &t);
        }
    }
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

int leaser_start(struct muster_shards *s, struct muster_err *err)
{
    int r = thread_start(&s->thread, NULL, run, s);
    return r == 0 ? 0
                  : muster_fail(err, MUSTER_EOS, "no thread for the coordinator: %s", strerror(r));
}

/* Sends LEAVE, by which the coordinator knows that this worker did not die. */
static void flush(struct muster_shards *s)
{
    int64_t end_ns = later(worker_now_ns(), FLUSH_MS);
    leaser_say_leave(s);
    while (s->phase == LEASER_UP && s->connection.out.used > 0 && worker_now_ns() < end_ns) {
        struct pollfd p = {.fd = s->connection.fd, .events = POLLOUT};
        (void)poll(&p, 1, 10);
        if (connection_move(&s->connection, NULL) < 0) {
            return;
        }
    }
}

void leaser_stop(struct muster_shards *s)
{
    uint64_t one = 1;
    pthread_mutex_lock(&s->mutex);
    s->stop = true;
    pthread_mutex_unlock(&s->mutex);
    (void)!write(s->wake_fd, &one, sizeof one);
    pthread_join(s->thread, NULL);
    flush(s);
}
