/* See holdings.h. */
#include "client/holdings.h"

#include "shard/set.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static int no_memory(struct muster_err *err)
{
    return muster_fail(err, MUSTER_ENOMEM, "no memory for leases");
}

/* ---- Lists ---- */

static int reserve(struct range_list *l, struct muster_err *err)
{
    if (l->head > 0 && l->head + l->count == l->room) {
        memmove(l->list, l->list + l->head, l->count * sizeof *l->list);
        l->head = 0;
    }
    if (l->head + l->count < l->room) {
        return 0;
    }
    size_t room = l->room ? 2 * l->room : 16;
    struct shard_range *list = reallocarray(l->list, room, sizeof *list);
    if (!list) {
        return no_memory(err);
    }
    l->list = list;
    l->room = room;
    return 0;
}

static int push(struct range_list *l, struct shard_range range, struct muster_err *err)
{
    int r = reserve(l, err);
    if (r == 0) {
        l->list[l->head + l->count++] = range;
    }
    return r;
}

/* A range that follows the last one is joined to it. */
static int append(struct range_list *l, struct shard_range range, struct muster_err *err)
{
    struct shard_range *last = l->count > 0 ? &l->list[l->head + l->count - 1] : NULL;
    if (last && shard_range_same_epoch(*last, range) && shard_range_end(*last) == range.first &&
        last->count <= UINT32_MAX - range.count) {
        last->count += range.count;
        return 0;
    }
    return push(l, range, err);
}

static void empty(struct range_list *l)
{
    l->head = l->count = 0;
}

static struct wire_ranges ranges_of(const struct range_list *l)
{
    return (struct wire_ranges){l->list + l->head, (uint32_t)l->count};
}

static uint64_t records_of(const struct range_list *l)
{
    uint64_t records = 0;
    for (size_t i = 0; i < l->count; i++) {
        records += l->list[l->head + i].count;
    }
    return records;
}

/* ---- Memory ---- */

void holdings_init(struct holdings *h, uint32_t shard, uint32_t sum_count)
{
    *h = (struct holdings){.shard = shard, .sum_count = sum_count};
}

static void batch_done(struct report_batch *batch)
{
    free(batch->done.list);
    free(batch->failed.list);
}

void holdings_done(struct holdings *h)
{
    batch_done(&h->reported);
    batch_done(&h->sent);
    free(h->granted.list);
    free(h->fetched);
}

/* ---- Granted ---- */

static int grant_one(struct holdings *h, struct shard_range range, struct muster_err *err)
{
    int r = append(&h->granted, range, err);
    h->granted_records += r == 0 ? range.count : 0;
    return r;
}

int holdings_grant(struct holdings *h, const struct wire_ranges *ranges, struct muster_err *err)
{
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < ranges->count; i++) {
        r = grant_one(h, ranges->list[i], err);
    }
    return r;
}

/* Returns the part of the range that is before the next known range. */
static uint32_t unknown_prefix(const struct shard_set *known, struct shard_range range)
{
    struct shard_range next;
    bool found = shard_set_next(known, range, &next) && shard_range_same_epoch(next, range) &&
                 next.first < shard_range_end(range);
    return found ? (uint32_t)(next.first - range.first) : range.count;
}

static int grant_gaps(struct holdings *h, const struct shard_set *known, struct shard_range range,
                      struct muster_err *err)
{
    int r = 0;
    while (r == 0) {
        uint32_t held = shard_set_prefix(known, range);
        uint32_t count = held > 0 ? held : unknown_prefix(known, range);
        struct shard_range piece = {range.dataset, range.epoch, range.first, count};
        r = held > 0 ? 0 : grant_one(h, piece, err);
        if (count == range.count) {
            break;
        }
        (void)shard_range_take(&range, count);
    }
    return r;
}

int holdings_grant_unknown(struct holdings *h, const struct wire_ranges *ranges, uint64_t sequence,
                           struct muster_err *err)
{
    struct shard_nodes nodes;
    struct shard_set known;
    struct shard_range *list = NULL;
    uint32_t count = 0;
    int r = holdings_list(h, sequence < h->sequence, &list, &count, err);
    if (r < 0 || shard_nodes_init(&nodes, count + 1) < 0) {
        free(list);
        return r < 0 ? r : no_memory(err);
    }
    shard_set_init(&known, &nodes);
    r = shard_nodes_reserve(&nodes, count) < 0 ? no_memory(err) : 0;
    for (uint32_t i = 0; r == 0 && i < count; i++) {
        (void)shard_set_add(&known, list[i]);
    }
    for (uint32_t i = 0; r == 0 && i < ranges->count; i++) {
        r = grant_gaps(h, &known, ranges->list[i], err);
    }
    shard_nodes_done(&nodes);
    free(list);
    return r;
}

/* ---- Fetched ---- */

static int reserve_fetched(struct holdings *h, struct muster_err *err)
{
    if (h->fetched_count < h->fetched_room) {
        return 0;
    }
    if (h->fetched_room == HOLDINGS_FETCHED_MAX) {
        return muster_fail(err, MUSTER_ETOOBIG, "%d shards are fetched and not reported",
                           HOLDINGS_FETCHED_MAX);
    }
    size_t room = h->fetched_room ? 2 * h->fetched_room : 16;
    struct fetched *ring = calloc(room, sizeof *ring);
    if (!ring) {
        return no_memory(err);
    }
    for (size_t i = 0; i < h->fetched_count; i++) {
        ring[i] = h->fetched[(h->fetched_head + i) & (h->fetched_room - 1)];
    }
    free(h->fetched);
    h->fetched = ring;
    h->fetched_head = 0;
    h->fetched_room = room;
    return 0;
}

/* Takes a range off the front of the granted ones, up to where the next shard begins. */
static struct shard_range take_shard(struct holdings *h)
{
    struct shard_range *front = &h->granted.list[h->granted.head];
    uint64_t left = h->shard - front->first % h->shard;
    struct shard_range range = *front;
    if (range.count <= left) {
        h->granted.head++;
        h->granted.count--;
    } else {
        range = shard_range_take(front, (uint32_t)left);
    }
    h->granted_records -= range.count;
    return range;
}

int holdings_fetch(struct holdings *h, uint64_t *ret_number, struct shard_range *ret,
                   struct muster_err *err)
{
    int r = h->granted.count > 0 ? reserve_fetched(h, err) : 0;
    if (r < 0 || h->granted.count == 0) {
        return r;
    }
    struct shard_range range = take_shard(h);
    size_t place = (h->fetched_head + h->fetched_count++) & (h->fetched_room - 1);
    h->fetched[place] = (struct fetched){++h->numbers, range};
    h->working++;
    *ret_number = h->numbers;
    *ret = range;
    return 1;
}

/* ---- Reported ---- */

/* Returns NULL if the shard was never fetched, or is reported. */
static struct fetched *find(const struct holdings *h, uint64_t number)
{
    uint64_t first = h->numbers - h->fetched_count + 1;
    if (number < first || number > h->numbers) {
        return NULL;
    }
    struct fetched *one =
        &h->fetched[(h->fetched_head + (size_t)(number - first)) & (h->fetched_room - 1)];
    assert(one->number == number);
    return one->range.count > 0 ? one : NULL;
}

static void forget_reported(struct holdings *h)
{
    while (h->fetched_count > 0 && h->fetched[h->fetched_head].range.count == 0) {
        h->fetched_head = (h->fetched_head + 1) & (h->fetched_room - 1);
        h->fetched_count--;
    }
}

int holdings_report(struct holdings *h, uint64_t number, bool done, const double *sums,
                    struct muster_err *err)
{
    struct fetched *one = find(h, number);
    if (!one) {
        return muster_fail(err, MUSTER_ENOENT, "shard %llu was not fetched, or is reported already",
                           (unsigned long long)number);
    }
    struct report_batch *batch = &h->reported;
    int r = done ? append(&batch->done, one->range, err) : push(&batch->failed, one->range, err);
    if (r < 0) {
        return r;
    }
    for (uint32_t i = 0; done && sums && i < h->sum_count; i++) {
        batch->sums[i] += sums[i];
    }
    batch->shards += done;
    one->range.count = 0;
    h->working--;
    forget_reported(h);
    return 0;
}

bool holdings_next(struct holdings *h)
{
    if (h->under_way || h->reported.done.count + h->reported.failed.count == 0) {
        return false;
    }
    struct report_batch empty_batch = h->sent;
    empty(&empty_batch.done);
    empty(&empty_batch.failed);
    empty_batch.shards = 0;
    memset(empty_batch.sums, 0, sizeof empty_batch.sums);
    h->sent = h->reported;
    h->reported = empty_batch;
    h->sequence++;
    h->under_way = true;
    return true;
}

struct wire_done holdings_message(const struct holdings *h, uint64_t bits[WIRE_SUMS_MAX])
{
    memcpy(bits, h->sent.sums, sizeof h->sent.sums);
    return (struct wire_done){.sequence = h->sequence,
                              .done = ranges_of(&h->sent.done),
                              .failed = ranges_of(&h->sent.failed),
                              .sums = {bits, h->sum_count}};
}

void holdings_receipt(struct holdings *h, uint64_t sequence)
{
    if (h->under_way && sequence >= h->sequence) {
        h->under_way = false;
        h->durable_shards += h->sent.shards;
        h->durable_records += records_of(&h->sent.done);
    }
}

bool holdings_all_durable(const struct holdings *h)
{
    return !h->under_way && h->reported.done.count + h->reported.failed.count == 0;
}

/* ---- All of it ---- */

static void copy_list(const struct range_list *l, struct shard_range **at)
{
    if (l->count > 0) {
        memcpy(*at, l->list + l->head, l->count * sizeof **at);
        *at += l->count;
    }
}

static int by_position(const void *a, const void *b)
{
    return shard_range_compare(*(const struct shard_range *)a, *(const struct shard_range *)b);
}

int holdings_list(const struct holdings *h, bool with_sent, struct shard_range **ret,
                  uint32_t *ret_count, struct muster_err *err)
{
    const struct report_batch *sent = &h->sent, *reported = &h->reported;
    size_t most = h->granted.count + h->fetched_count + sent->done.count + sent->failed.count +
                  reported->done.count + reported->failed.count;
    struct shard_range *list = calloc(most + 1, sizeof *list), *at = list;
    if (!list) {
        return no_memory(err);
    }
    copy_list(&h->granted, &at);
    for (size_t i = 0; i < h->fetched_count; i++) {
        struct shard_range range = h->fetched[(h->fetched_head + i) & (h->fetched_room - 1)].range;
        if (range.count > 0) {
            *at++ = range;
        }
    }
    copy_list(&reported->done, &at);
    copy_list(&reported->failed, &at);
    if (h->under_way && with_sent) {
        copy_list(&sent->done, &at);
        copy_list(&sent->failed, &at);
    }
    qsort(list, (size_t)(at - list), sizeof *list, by_position);
    *ret = list;
    *ret_count = (uint32_t)(at - list);
    return 0;
}
