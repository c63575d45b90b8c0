/* Decides which request is sent next, from lanes, the budget, the number of requests under way,
 * and the times of further tries.
 *
 * Layer: services, room kube/pace. Pure: time comes in. Ownership: the caller's structs; an item is
 * in the queue from pace_add to pace_remove.
 *
 * An item is in a lane (it is sent as soon as possible), waits (for its next try, or is only
 * watched for its deadline) or is sent. Lane 0 is outside of the budget and of the limit of
 * requests under way; the other lanes are served in their order. Within a lane the groups (the
 * namespaces) take turns, and no group has all requests under way: requests that a webhook of one
 * namespace delays do not delay the others (controller/fair_share.h).
 */
#pragma once

#include "kube/pace/budget.h"

#include <stddef.h>

enum { PACE_LANES = 4, PACE_ITEMS_MAX = 100000 };

/* Later than any other time. */
#define PACE_NEVER INT64_MAX

enum pace_place { PACE_NOWHERE, PACE_LANE, PACE_WAITING, PACE_SENT };

struct pace_item {
    int lane;
    bool is_stream;      /* a long request: when sent, it does not count as under way */
    const char *group;   /* the group that it belongs to, borrowed; NULL: none, with no share */
    int64_t deadline_ms; /* applies until it is sent; PACE_NEVER: none */
    enum pace_place place;
    bool counted; /* sent, and counts as under way */
    int64_t due_ms;
    struct pace_item *prev, *next;
    struct pace_item *later; /* in the first item of a group: its other items, in order */
};

struct pace {
    struct budget budget;
    int under_way, under_way_max;
    size_t count;
    struct pace_item *lanes[PACE_LANES]; /* the first of each group, in turn */
    struct pace_item *sent;              /* those that count as under way */
    struct pace_item *waiting;
    int64_t wake_ms; /* no item is due, and no deadline is over, before this; may be too early */
};

void pace_init(struct pace *q, double qps, int burst, int under_way_max);

/* Puts the item into its lane. Returns false if there are too many already. */
bool pace_add(struct pace *q, struct pace_item *item);
/* Makes an item of the queue, in any place, wait until due_ms and then join its lane. */
void pace_wait(struct pace *q, struct pace_item *item, int64_t due_ms);
/* Takes the item out of the queue, from any place. */
void pace_remove(struct pace *q, struct pace_item *item);

/* Returns the item to send now, whose place becomes PACE_SENT; NULL: none, and *ret_wake_ms says
 * when to ask again at the latest (PACE_NEVER: when something changes). */
struct pace_item *pace_next(struct pace *q, int64_t now_ns, int64_t *ret_wake_ms);

/* Takes an item whose deadline is over out of the queue, and returns it; NULL: none. */
struct pace_item *pace_late(struct pace *q, int64_t now_ms);
