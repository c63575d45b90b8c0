/* Which request is sent next: lanes, the budget, how many are under way, and when to try again.
 *
 * Layer: services, room kube/pace. Pure: time comes in. Ownership: the caller's structs; an item is
 * in the queue from queue_add to queue_remove.
 *
 * An item is in a lane (it goes as soon as it may), waits (for its next try, or is only watched for
 * its deadline) or is sent. Lane 0 is outside of the budget and of the limit of those under way;
 * the others are served in their order.
 */
#pragma once

#include "kube/pace/budget.h"

#include <stddef.h>

enum { QUEUE_LANES = 4, QUEUE_ITEMS_MAX = 100000 };

/* Later than any time. */
#define QUEUE_NEVER INT64_MAX

enum queue_place { QUEUE_NOWHERE, QUEUE_LANE, QUEUE_WAITING, QUEUE_SENT };

struct queue_item {
    int lane;
    bool is_stream;      /* it lasts: sent, it is not counted as under way */
    int64_t deadline_ms; /* while it is not sent; QUEUE_NEVER: none */
    enum queue_place place;
    bool counted; /* as under way, since it was sent */
    int64_t due_ms;
    struct queue_item *prev, *next;
};

struct queue {
    struct budget budget;
    int under_way, under_way_max;
    size_t count;
    struct queue_item *lanes[QUEUE_LANES];
    struct queue_item *waiting;
    int64_t wake_ms; /* no waiting item is due and no deadline is over before; may be too early */
};

void queue_init(struct queue *q, double qps, int burst, int under_way_max);

/* Into its lane. False: there are too many already. */
bool queue_add(struct queue *q, struct queue_item *item);
/* What is in the queue, in any place: into its lane when due_ms has come. */
void queue_wait(struct queue *q, struct queue_item *item, int64_t due_ms);
/* Out of the queue, whatever its place. */
void queue_remove(struct queue *q, struct queue_item *item);

/* The item to be sent now, which is in place QUEUE_SENT from now on; NULL: none, and *ret_wake_ms
 * says when to ask again at the latest (QUEUE_NEVER: when something changes). */
struct queue_item *queue_next(struct queue *q, int64_t now_ns, int64_t *ret_wake_ms);

/* An item whose deadline is over, taken out of the queue; NULL: none. */
struct queue_item *queue_late(struct queue *q, int64_t now_ms);
