/* See pace/queue.h. */
#include "kube/pace/queue.h"

#include "controller/fair_share.h"

#include <assert.h>
#include <string.h>
#include <utlist.h>

enum { NS_PER_MS = 1000000 };

void pace_init(struct pace *q, double qps, int burst, int under_way_max)
{
    *q = (struct pace){.under_way_max = under_way_max, .wake_ms = PACE_NEVER};
    budget_init(&q->budget, qps, burst);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool is_counted(const struct pace_item *item)
{
    return item->lane > 0 && !item->is_stream;
}

static bool same_group(const struct pace_item *a, const struct pace_item *b)
{
    return a->group == b->group || (a->group && b->group && strcmp(a->group, b->group) == 0);
}

/* Returns the first item of the item's group in its lane; NULL: there is none. */
static struct pace_item *first_of_group(const struct pace *q, const struct pace_item *item)
{
    struct pace_item *first = q->lanes[item->lane];
    while (first && !same_group(first, item)) {
        first = first->next;
    }
    return first;
}

/* Takes the item out of its lane; the rest of its group, if any, has its turn after the others. */
static void leave_lane(struct pace *q, struct pace_item *item)
{
    struct pace_item *first = first_of_group(q, item);
    if (first != item) {
        DL_DELETE(first->later, item);
        return;
    }
    struct pace_item *later = item->later, *next = later;
    DL_DELETE(q->lanes[item->lane], item);
    item->later = NULL;
    if (next) {
        DL_DELETE(later, next);
        next->later = later;
        DL_APPEND(q->lanes[item->lane], next);
    }
}

static void take_out(struct pace *q, struct pace_item *item)
{
    assert(item->place != PACE_NOWHERE);
    if (item->place == PACE_LANE) {
        leave_lane(q, item);
    } else if (item->place == PACE_WAITING) {
        DL_DELETE(q->waiting, item);
    } else if (item->counted) {
        item->counted = false;
        assert(q->under_way > 0);
        q->under_way--;
        DL_DELETE(q->sent, item);
    }
    item->place = PACE_NOWHERE;
}

static void put_in_lane(struct pace *q, struct pace_item *item)
{
    struct pace_item *first = first_of_group(q, item);
    item->place = PACE_LANE;
    if (first) {
        DL_APPEND(first->later, item);
    } else {
        DL_APPEND(q->lanes[item->lane], item);
    }
    q->wake_ms = earlier(q->wake_ms, item->deadline_ms);
}

bool pace_add(struct pace *q, struct pace_item *item)
{
    assert(item->place == PACE_NOWHERE && item->lane >= 0 && item->lane < PACE_LANES);
    if (q->count >= PACE_ITEMS_MAX) {
        return false;
    }
    q->count++;
    put_in_lane(q, item);
    return true;
}

void pace_wait(struct pace *q, struct pace_item *item, int64_t due_ms)
{
    take_out(q, item);
    item->place = PACE_WAITING;
    item->due_ms = due_ms;
    DL_APPEND(q->waiting, item);
    q->wake_ms = earlier(q->wake_ms, earlier(due_ms, item->deadline_ms));
}

void pace_remove(struct pace *q, struct pace_item *item)
{
    take_out(q, item);
    assert(q->count > 0);
    q->count--;
}

/* Moves the items that are due into their lanes, and computes when to wake next. It looks at all
 * items that are not sent, so it is called only when wake_ms has come. */
static void look_through(struct pace *q, int64_t now_ms)
{
    struct pace_item *item, *next;
    q->wake_ms = PACE_NEVER;
    DL_FOREACH_SAFE (q->waiting, item, next) {
        if (item->due_ms <= now_ms) {
            DL_DELETE(q->waiting, item);
            put_in_lane(q, item);
        } else {
            q->wake_ms = earlier(q->wake_ms, earlier(item->due_ms, item->deadline_ms));
        }
    }
    for (int lane = 0; lane < PACE_LANES; lane++) {
        DL_FOREACH (q->lanes[lane], item) {
            q->wake_ms = earlier(q->wake_ms, item->deadline_ms);
            DL_FOREACH (item->later, next) {
                q->wake_ms = earlier(q->wake_ms, next->deadline_ms);
            }
        }
    }
}

static bool may_be_under_way(const struct pace *q, const struct pace_item *item)
{
    if (!is_counted(item)) {
        return true;
    }
    size_t held = 0;
    const struct pace_item *other;
    DL_FOREACH (q->sent, other) {
        held += item->group && same_group(other, item);
    }
    return fair_share_may_take(held, (size_t)q->under_way, (size_t)q->under_way_max);
}

static struct pace_item *first_that_may(const struct pace *q, int lane)
{
    struct pace_item *item = q->lanes[lane];
    while (item && !may_be_under_way(q, item)) {
        item = item->next;
    }
    return item;
}

static void send(struct pace *q, struct pace_item *item)
{
    take_out(q, item);
    item->place = PACE_SENT;
    item->counted = is_counted(item);
    if (item->counted) {
        q->under_way++;
        DL_APPEND(q->sent, item);
    }
}

struct pace_item *pace_next(struct pace *q, int64_t now_ns, int64_t *ret_wake_ms)
{
    int64_t now_ms = now_ns / NS_PER_MS;
    if (q->wake_ms <= now_ms) {
        look_through(q, now_ms);
    }
    *ret_wake_ms = q->wake_ms;
    for (int lane = 0; lane < PACE_LANES; lane++) {
        struct pace_item *item = first_that_may(q, lane);
        if (!item) {
            continue;
        }
        int64_t missing_ns = lane == 0 ? 0 : budget_take(&q->budget, now_ns);
        if (missing_ns > 0) {
            int64_t wake_ms = (now_ns + missing_ns + NS_PER_MS - 1) / NS_PER_MS;
            *ret_wake_ms = earlier(*ret_wake_ms, wake_ms);
            return NULL;
        }
        send(q, item);
        return item;
    }
    return NULL;
}

static struct pace_item *first_late(struct pace_item *list, int64_t now_ms)
{
    struct pace_item *item;
    DL_FOREACH (list, item) {
        if (item->deadline_ms <= now_ms) {
            return item;
        }
    }
    return NULL;
}

static struct pace_item *first_late_in_lane(struct pace_item *lane, int64_t now_ms)
{
    struct pace_item *first, *late = first_late(lane, now_ms);
    DL_FOREACH (lane, first) {
        late = late ? late : first_late(first->later, now_ms);
    }
    return late;
}

struct pace_item *pace_late(struct pace *q, int64_t now_ms)
{
    if (q->wake_ms > now_ms) {
        return NULL;
    }
    struct pace_item *late = first_late(q->waiting, now_ms);
    for (int lane = 0; !late && lane < PACE_LANES; lane++) {
        late = first_late_in_lane(q->lanes[lane], now_ms);
    }
    if (late) {
        pace_remove(q, late);
    }
    return late;
}
