/* See queue.h. */
#include "controller/queue.h"

#include "controller/fair_share.h"
#include "core/hash.h"

#include <assert.h>
#include <muster/err.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

enum { NOT_IN_HEAP = -1, DOUBLINGS_MAX = 20 };

struct queue_namespace {
    size_t items, taken;
    struct queue_item *ready; /* in order of arrival */
    struct queue_namespace *prev, *next;
    UT_hash_handle hh;
    char name[];
};

struct queue_item {
    struct queue_namespace *namespace;
    bool ready; /* in its namespace's list */
    bool taken;
    bool again; /* added while it was taken */
    bool unheard;
    int failures;
    int64_t since_ms; /* since when it is ready or taken */
    int64_t added_ms; /* while `again` */
    int64_t at_ms;    /* while it is in the heap */
    ptrdiff_t heaped; /* its index in the heap */
    struct queue_item *prev, *next;
    UT_hash_handle hh;
    char key[];
};

void queue_init(struct queue *q, size_t keys_max, size_t taken_max)
{
    /* the buckets of controller-runtime */
    static const double limits[] = {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3,
                                    1e-2, 1e-1, 1,    10,   100,  1000};
    *q = (struct queue){.keys_max = keys_max, .taken_max = taken_max};
    histogram_init(&q->waited, limits, sizeof limits / sizeof limits[0]);
    histogram_init(&q->worked, limits, sizeof limits / sizeof limits[0]);
}

static void free_item(struct queue *q, struct queue_item *item)
{
    struct queue_namespace *namespace = item->namespace;
    HASH_DEL(q->items, item);
    free(item);
    if (--namespace->items == 0) {
        HASH_DEL(q->namespaces, namespace);
        free(namespace);
    }
}

void queue_done(struct queue *q)
{
    struct queue_item *item, *next;
    HASH_ITER (hh, q->items, item, next) {
        free_item(q, item);
    }
    free(q->heap);
    *q = (struct queue){0};
}

static struct queue_item *find(const struct queue *q, const char *key)
{
    struct queue_item *item = NULL;
    HASH_FIND_STR(q->items, key, item);
    return item;
}

/* ---- the heap ---- */

static void put(struct queue *q, size_t place, struct queue_item *item)
{
    q->heap[place] = item;
    item->heaped = (ptrdiff_t)place;
}

static void rise(struct queue *q, size_t place)
{
    struct queue_item *item = q->heap[place];
    for (; place > 0 && item->at_ms < q->heap[(place - 1) / 2]->at_ms; place = (place - 1) / 2) {
        put(q, place, q->heap[(place - 1) / 2]);
    }
    put(q, place, item);
}

static void sink(struct queue *q, size_t place)
{
    struct queue_item *item = q->heap[place];
    for (size_t child = 2 * place + 1; child < q->heap_count; child = 2 * place + 1) {
        child += child + 1 < q->heap_count && q->heap[child + 1]->at_ms < q->heap[child]->at_ms;
        if (item->at_ms <= q->heap[child]->at_ms) {
            break;
        }
        put(q, place, q->heap[child]);
        place = child;
    }
    put(q, place, item);
}

static void leave_heap(struct queue *q, struct queue_item *item)
{
    if (item->heaped == NOT_IN_HEAP) {
        return;
    }
    size_t place = (size_t)item->heaped;
    struct queue_item *last = q->heap[--q->heap_count];
    item->heaped = NOT_IN_HEAP;
    if (last != item) {
        put(q, place, last);
        rise(q, place);
        sink(q, (size_t)last->heaped);
    }
}

/* Makes room in the heap for every item when it is created, so that nothing can fail later. */
static bool make_room(struct queue *q, size_t count)
{
    if (count <= q->heap_room) {
        return true;
    }
    size_t room = q->heap_room ? 2 * q->heap_room : 16;
    struct queue_item **heap = realloc(q->heap, room * sizeof(struct queue_item *));
    if (!heap) {
        return false;
    }
    q->heap = heap;
    q->heap_room = room;
    return true;
}

/* ---- adding ---- */

/* Returns the key's namespace with one item more; NULL when out of memory. */
static struct queue_namespace *enter_namespace(struct queue *q, const char *key)
{
    struct queue_namespace *namespace = NULL;
    size_t bytes = strcspn(key, "/");
    HASH_FIND(hh, q->namespaces, key, bytes, namespace);
    if (!namespace) {
        namespace = calloc(1, sizeof *namespace + bytes + 1);
        if (!namespace) {
            return NULL;
        }
        memcpy(namespace->name, key, bytes);
        HASH_ADD_KEYPTR(hh, q->namespaces, namespace->name, bytes, namespace);
    }
    namespace->items++;
    return namespace;
}

static struct queue_item *make_item(struct queue *q, const char *key)
{
    size_t bytes = strlen(key) + 1;
    struct queue_item *item =
        make_room(q, HASH_COUNT(q->items) + 1) ? calloc(1, sizeof *item + bytes) : NULL;
    struct queue_namespace *namespace = item ? enter_namespace(q, key) : NULL;
    if (!namespace) {
        free(item);
        return NULL;
    }
    memcpy(item->key, key, bytes);
    item->namespace = namespace;
    item->heaped = NOT_IN_HEAP;
    HASH_ADD_STR(q->items, key, item);
    return item;
}

static int find_or_make(struct queue *q, const char *key, struct queue_item **ret)
{
    struct queue_item *item = find(q, key);
    if (!item && HASH_COUNT(q->items) >= q->keys_max) {
        return MUSTER_ETOOBIG;
    }
    item = item ? item : make_item(q, key);
    *ret = item;
    return item ? 0 : MUSTER_ENOMEM;
}

static void make_ready(struct queue *q, struct queue_item *item, int64_t since_ms)
{
    leave_heap(q, item);
    if (!item->ready) {
        item->ready = true;
        item->since_ms = since_ms;
        q->ready_count++;
        q->adds++;
        if (!item->namespace->ready) {
            DL_APPEND(q->waiting, item->namespace);
        }
        DL_APPEND(item->namespace->ready, item);
    }
}

static void drop_ready(struct queue *q, struct queue_item *item)
{
    struct queue_namespace *namespace = item->namespace;
    if (item->ready) {
        item->ready = false;
        q->ready_count--;
        DL_DELETE(namespace->ready, item);
        if (!namespace->ready) {
            DL_DELETE(q->waiting, namespace);
        }
    }
}

/* A key that is taken becomes ready again when it is released, and its waiting time counts from
 * now. */
static void make_ready_or_again(struct queue *q, struct queue_item *item, int64_t since_ms)
{
    if (!item->taken) {
        make_ready(q, item, since_ms);
    } else if (!item->again) {
        item->again = true;
        item->added_ms = since_ms;
    }
}

int queue_add(struct queue *q, const char *key, int64_t now_ms)
{
    struct queue_item *item = NULL;
    int r = find_or_make(q, key, &item);
    if (r < 0) {
        return r;
    }
    make_ready_or_again(q, item, now_ms);
    return 0;
}

int queue_add_at(struct queue *q, const char *key, int64_t at_ms)
{
    struct queue_item *item = NULL;
    int r = find_or_make(q, key, &item);
    if (r < 0 || item->ready) {
        return r;
    }
    if (item->heaped == NOT_IN_HEAP) {
        item->at_ms = at_ms;
        put(q, q->heap_count++, item);
        rise(q, (size_t)item->heaped);
    } else if (at_ms < item->at_ms) {
        item->at_ms = at_ms;
        rise(q, (size_t)item->heaped);
    }
    return 0;
}

/* ---- taking ---- */

static void wake_due(struct queue *q, int64_t now_ms)
{
    while (q->heap_count > 0 && q->heap[0]->at_ms <= now_ms) {
        struct queue_item *item = q->heap[0];
        leave_heap(q, item);
        make_ready_or_again(q, item, item->at_ms);
    }
}

/* Returns the first item that may be taken; NULL: none. */
static struct queue_item *first_that_may(const struct queue *q)
{
    const struct queue_namespace *namespace = q->waiting;
    while (namespace && !fair_share_may_take(namespace->taken, q->taken_count, q->taken_max)) {
        namespace = namespace->next;
    }
    return namespace ? namespace->ready : NULL;
}

/* Moves the namespace to the end of the list if it still has ready items. */
static void have_next_turn_last(struct queue *q, struct queue_namespace *namespace)
{
    if (namespace->ready) {
        DL_DELETE(q->waiting, namespace);
        DL_APPEND(q->waiting, namespace);
    }
}

const char *queue_take(struct queue *q, int64_t now_ms)
{
    wake_due(q, now_ms);
    struct queue_item *item = first_that_may(q);
    if (!item) {
        return NULL;
    }
    assert(!item->taken && item->heaped == NOT_IN_HEAP);
    drop_ready(q, item);
    have_next_turn_last(q, item->namespace);
    histogram_add(&q->waited, now_ms - item->since_ms);
    item->since_ms = now_ms;
    item->taken = true;
    item->again = item->unheard = false;
    item->namespace->taken++;
    q->taken_count++;
    return item->key;
}

void queue_release(struct queue *q, const char *key, int64_t now_ms)
{
    struct queue_item *item = find(q, key);
    assert(item && item->taken);
    histogram_add(&q->worked, now_ms - item->since_ms);
    item->taken = false;
    item->namespace->taken--;
    q->taken_count--;
    if (item->again) {
        item->again = false;
        make_ready(q, item, item->added_ms);
    }
}

/* Returns up to a quarter of the delay, which differs by key: keys that failed together return
 * apart. */
static int64_t jitter(const struct queue_item *item, int64_t delay)
{
    uint64_t drawn =
        hash_bytes(hash_text(HASH_START, item->key), &item->failures, sizeof item->failures);
    return (int64_t)((drawn >> 16) % (uint64_t)(delay / 4 + 1));
}

int queue_retry(struct queue *q, const char *key, int64_t now_ms, int64_t first_ms,
                int64_t at_least_ms, bool unheard)
{
    struct queue_item *item = NULL;
    int r = find_or_make(q, key, &item);
    if (r < 0) {
        return r;
    }
    q->retries++;
    item->unheard = unheard;
    int64_t delay = first_ms << (item->failures < DOUBLINGS_MAX ? item->failures : DOUBLINGS_MAX);
    item->failures += item->failures < DOUBLINGS_MAX;
    delay = delay < QUEUE_RETRY_MAX_MS ? delay : QUEUE_RETRY_MAX_MS;
    delay = delay > at_least_ms ? delay : at_least_ms;
    return queue_add_at(q, key, now_ms + delay + jitter(item, delay));
}

void queue_heard(struct queue *q, int64_t now_ms)
{
    for (struct queue_item *item = q->items; item; item = item->hh.next) {
        int64_t at_ms = now_ms + jitter(item, 4 * (int64_t)QUEUE_HEARD_WITHIN_MS);
        if (item->unheard && item->heaped != NOT_IN_HEAP && at_ms < item->at_ms) {
            item->at_ms = at_ms;
            rise(q, (size_t)item->heaped);
        }
        item->unheard = false;
    }
}

void queue_succeeded(struct queue *q, const char *key)
{
    struct queue_item *item = find(q, key);
    if (item) {
        item->failures = 0;
    }
}

int queue_failures(const struct queue *q, const char *key)
{
    const struct queue_item *item = find(q, key);
    return item ? item->failures : 0;
}

void queue_remove(struct queue *q, const char *key)
{
    struct queue_item *item = find(q, key);
    if (!item) {
        return;
    }
    assert(!item->taken);
    leave_heap(q, item);
    drop_ready(q, item);
    free_item(q, item);
}

/* ---- asking ---- */

int64_t queue_next(const struct queue *q)
{
    if (first_that_may(q)) {
        return INT64_MIN;
    }
    return q->heap_count > 0 ? q->heap[0]->at_ms : INT64_MAX;
}

size_t queue_busy(const struct queue *q)
{
    size_t count = 0;
    for (const struct queue_item *item = q->items; item; item = item->hh.next) {
        count += item->ready || item->taken || item->heaped != NOT_IN_HEAP;
    }
    return count;
}
