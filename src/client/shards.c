/* The functions of muster/shards.h. Layer: worker (part of libmuster). Thread: the user's. */
#include "client/leaser.h"
#include "client/worker.h"
#include "comm/system/deadline.h"
#include "comm/system/sized.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    TURN_MS = 50,
    CLOSE_MS = 2000,      /* waits so long for receipts */
    ASK_MAX = 1 << 16,    /* shards in one request */
    ASK_MORE_MS = 10,     /* if a grant lasts shorter than this, the next is twice as large */
    ASK_LESS_MS = 100,    /* … if it lasts longer, half as large */
    ASK_LATE_MS = 200,    /* shards that last longer are not requested in advance */
    UNSENT_MAX = 1 << 16, /* ranges that may wait for a receipt */
    NS_PER_MS = 1000000,
};

static const struct sized_kind sized_shards_options =
                                   SIZED_KIND(muster_shards_options, MUSTER_SHARDS_OPTIONS_INIT),
                               sized_shard = SIZED_KIND(muster_shard, MUSTER_SHARD_INIT),
                               sized_shards_info =
                                   SIZED_KIND(muster_shards_info, MUSTER_SHARDS_INFO_INIT);

static int check_own(const struct muster_shards *s, struct muster_err *err)
{
    int r = sized_check_err(err);
    if (r == 0 && s->owner != getpid()) {
        return muster_fail(err, MUSTER_EINVAL, "a forked process cannot use its parent's shards");
    }
    return r;
}

/* ---- Waiting, with the mutex held ---- */

static int wait_turn(struct muster_shards *s, struct muster_err *err)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += TURN_MS * NS_PER_MS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    (void)pthread_cond_timedwait(&s->changed, &s->mutex, &until);
    if (!s->options.interrupted) {
        return 0;
    }
    pthread_mutex_unlock(&s->mutex);
    bool enough = s->options.interrupted(s->options.user);
    pthread_mutex_lock(&s->mutex);
    return enough ? muster_fail(err, MUSTER_EINTERRUPTED, "interrupted while others are waited for")
                  : 0;
}

static int failure(const struct muster_shards *s, struct muster_err *err)
{
    return s->failed ? muster_fail(err, s->failed, "%s", s->why.text) : 0;
}

/* ---- Opening and closing ---- */

static int wait_for_coordinator(struct muster_shards *s, struct muster_err *err)
{
    int64_t end_ns = deadline_after_ms(s->options.connect_ms);
    int r = 0;
    pthread_mutex_lock(&s->mutex);
    while (r == 0 && !s->enrolled && !s->failed) {
        r = worker_now_ns() < end_ns
                ? wait_turn(s, err)
                : muster_fail(err, MUSTER_EUNAVAIL, "%s (%s)",
                              s->why.code < 0 ? s->why.text : "the coordinator is silent",
                              s->coordinator);
    }
    r = r < 0 ? r : failure(s, err);
    pthread_mutex_unlock(&s->mutex);
    return r;
}

int muster_shards_open(const struct muster_shards_options *options, struct muster_shards **ret,
                       struct muster_err *err)
{
    struct muster_shards_options own = MUSTER_SHARDS_OPTIONS_INIT;
    struct muster_shards *s = NULL;
    int r = sized_check_err(err);
    r = r < 0 ? r : sized_read(&sized_shards_options, &own, options, err);
    r = r < 0 ? r : leaser_open(&own, &s, err);
    if (r < 0) {
        return r;
    }
    r = leaser_start(s, err);
    if (r < 0) {
        leaser_free(s);
        return r;
    }
    r = wait_for_coordinator(s, err);
    if (r < 0) {
        leaser_stop(s);
        leaser_free(s);
        return r;
    }
    *ret = s;
    return 0;
}

void muster_shards_close(struct muster_shards *s)
{
    if (!s) {
        return;
    }
    if (s->owner != getpid()) {
        return; /* the memory, too, is used by the parent */
    }
    int64_t end_ns = worker_now_ns() + CLOSE_MS * (int64_t)NS_PER_MS;
    pthread_mutex_lock(&s->mutex);
    while (!s->failed && s->phase == LEASER_UP && !holdings_all_durable(&s->holdings) &&
           worker_now_ns() < end_ns && wait_turn(s, NULL) == 0) {
    }
    pthread_mutex_unlock(&s->mutex);
    leaser_stop(s);
    leaser_free(s);
}

/* ---- Fetching ---- */

/* Asks for the number of records that lasts some milliseconds: one if each takes long, thousands if
 * the request takes longer than they do. */
static void ask_if_low(struct muster_shards *s, bool needed)
{
    int64_t now = worker_now_ns(), since = now - s->asked_ns;
    bool low = s->holdings.granted_records <= s->ask / 2 * s->options.shard;
    if (s->asked || s->none_now || s->ended || s->phase != LEASER_UP || !low) {
        return;
    }
    if (!needed && s->ask == 1 && since > (int64_t)ASK_LATE_MS * NS_PER_MS) {
        return;
    }
    if (since < (int64_t)ASK_MORE_MS * NS_PER_MS) {
        s->ask = s->ask < ASK_MAX ? 2 * s->ask : s->ask;
    } else if (since > (int64_t)ASK_LESS_MS * NS_PER_MS && s->ask > 1) {
        s->ask /= 2;
    }
    s->asked_ns = now;
    leaser_say_fetch(s);
}

/* Returns 1 or 0 like muster_shards_fetch. */
static int take(struct muster_shards *s, uint64_t *ret_number, struct shard_range *ret,
                struct muster_err *err)
{
    int r = 0;
    while (r == 0) {
        r = failure(s, err);
        r = r < 0 ? r : holdings_fetch(&s->holdings, ret_number, ret, err);
        if (r != 0 || s->ended) {
            break;
        }
        if (s->none_now && s->holdings.working > 0) {
            return muster_fail(err, MUSTER_EAGAIN,
                               "all that is left is held, some of it here: report it first");
        }
        ask_if_low(s, true);
        r = wait_turn(s, err);
    }
    if (r == 1) {
        ask_if_low(s, false);
    }
    return r;
}

static void write_records(struct muster_shards *s, struct shard_range range)
{
    const struct muster_shards_options *o = &s->options;
    if (s->order_epoch != range.epoch) {
        shard_order_init(&s->order, o->records, o->shuffle, o->seed, s->number, range.epoch);
        s->order_epoch = range.epoch;
    }
    for (uint32_t i = 0; i < range.count; i++) {
        s->records[i] = shard_order_record(&s->order, range.first + i);
    }
}

int muster_shards_fetch(struct muster_shards *s, struct muster_shard *ret, struct muster_err *err)
{
    struct shard_range range;
    uint64_t number;
    int r = check_own(s, err);
    r = r < 0 ? r : sized_check(&sized_shard, ret, err);
    if (r < 0) {
        return r;
    }
    pthread_mutex_lock(&s->mutex);
    r = take(s, &number, &range, err);
    pthread_mutex_unlock(&s->mutex);
    if (r == 1) {
        write_records(s, range);
        s->epoch = range.epoch;
        const struct muster_shard shard = {.struct_size = sizeof shard,
                                           .number = number,
                                           .epoch = range.epoch,
                                           .first = range.first,
                                           .records = s->records,
                                           .record_count = range.count};
        sized_write(&sized_shard, ret, &shard);
    }
    return r;
}

/* ---- Reporting ---- */

static int report(struct muster_shards *s, uint64_t number, bool done, const double *sums,
                  struct muster_err *err)
{
    int r = check_own(s, err);
    if (r < 0) {
        return r;
    }
    pthread_mutex_lock(&s->mutex);
    r = failure(s, err);
    while (r == 0 && s->holdings.reported.done.count >= UNSENT_MAX) {
        r = wait_turn(s, err);
        r = r < 0 ? r : failure(s, err);
    }
    r = r < 0 ? r : holdings_report(&s->holdings, number, done, sums, err);
    if (r == 0) {
        leaser_say_done(s);
    }
    pthread_mutex_unlock(&s->mutex);
    return r;
}

int muster_shards_report(struct muster_shards *s, uint64_t number, const double *sums,
                         struct muster_err *err)
{
    return report(s, number, true, sums, err);
}

int muster_shards_fail(struct muster_shards *s, uint64_t number, struct muster_err *err)
{
    return report(s, number, false, NULL, err);
}

int muster_shards_wait(struct muster_shards *s, struct muster_err *err)
{
    int r = check_own(s, err);
    if (r < 0) {
        return r;
    }
    pthread_mutex_lock(&s->mutex);
    while (r == 0 && !holdings_all_durable(&s->holdings)) {
        r = failure(s, err);
        r = r < 0 ? r : wait_turn(s, err);
    }
    pthread_mutex_unlock(&s->mutex);
    return r;
}

int muster_shards_query(struct muster_shards *s, struct muster_shards_info *ret,
                        struct muster_err *err)
{
    int r = check_own(s, err);
    r = r < 0 ? r : sized_check(&sized_shards_info, ret, err);
    if (r < 0) {
        return r;
    }
    pthread_mutex_lock(&s->mutex);
    const struct holdings *h = &s->holdings;
    struct muster_shards_info info = {.struct_size = sizeof info,
                                      .incarnation = s->incarnation,
                                      .fetched = h->numbers,
                                      .reported = h->durable_shards,
                                      .records_done = h->durable_records,
                                      .epoch = s->epoch,
                                      .ended = s->ended && h->granted.count == 0,
                                      .sum_count = h->sum_count,
                                      .left_out = s->left_out};
    memcpy(info.sums, s->sums, sizeof info.sums);
    pthread_mutex_unlock(&s->mutex);
    sized_write(&sized_shards_info, ret, &info);
    return 0;
}

/* ---- The position in the data set ---- */

static int ask_position(struct muster_shards *s, const struct muster_shards_position *begins,
                        struct muster_err *err)
{
    int r = failure(s, err);
    s->begins = begins;
    r = r < 0 ? r : leaser_say_to_do(s, err);
    s->wants_position = r == 0;
    while (r == 0 && s->wants_position) {
        r = wait_turn(s, err);
        r = r < 0 ? r : failure(s, err);
    }
    s->wants_position = false;
    s->begins = NULL;
    return r;
}

int muster_shards_position(struct muster_shards *s, struct muster_shards_position *ret,
                           struct muster_err *err)
{
    int r = check_own(s, err);
    if (r < 0) {
        return r;
    }
    pthread_mutex_lock(&s->mutex);
    r = ask_position(s, NULL, err);
    const struct leaser_position *p = &s->position;
    if (r == 0) {
        *ret = (struct muster_shards_position){.epoch = p->epoch,
                                               .to_do = p->ranges,
                                               .to_do_count = p->to_do_count,
                                               .held = p->ranges + p->to_do_count,
                                               .held_count = p->held_count};
    }
    pthread_mutex_unlock(&s->mutex);
    return r;
}

int muster_shards_begin(struct muster_shards *s, const struct muster_shards_position *position,
                        struct muster_err *err)
{
    int r = check_own(s, err);
    if (r < 0) {
        return r;
    }
    pthread_mutex_lock(&s->mutex);
    r = ask_position(s, position, err);
    r = r < 0 ? r : s->position.begun;
    pthread_mutex_unlock(&s->mutex);
    return r;
}
