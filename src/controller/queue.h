/* Keys ("namespace/name") that wait for a step. Each key is in the queue once. The keys of a
 * namespace keep their order; the namespaces take turns, and no namespace has all keys that are
 * taken (controller/fair_share.h). A key that was taken is given out again only after its release,
 * even if it was added meanwhile; a key that fails waits longer each time.
 *
 * Layer: pure; time comes in as data (any clock that does not jump, in milliseconds). Ownership:
 * queue_init/queue_done; keys are copied.
 */
#pragma once

#include "base/histogram.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { QUEUE_RETRY_MAX_MS = 60000, QUEUE_HEARD_WITHIN_MS = 1000 };

struct queue_item;
struct queue_namespace;

struct queue {
    struct queue_item *items;           /* by key */
    struct queue_namespace *namespaces; /* by name: the namespaces of all items */
    struct queue_namespace *waiting;    /* those that have ready items, in turn */
    struct queue_item **heap;           /* keys that wait for a time: the earliest first */
    size_t heap_count, heap_room;
    size_t ready_count, taken_count;
    size_t keys_max, taken_max;
    uint64_t adds, retries;  /* since queue_init */
    struct histogram waited; /* of each key that was taken: the time since it was added, or due */
    struct histogram worked; /* of each key that was released: the time since it was taken */
};

void queue_init(struct queue *queue, size_t keys_max, size_t taken_max);
void queue_done(struct queue *queue);

/* Both return 0, MUSTER_ENOMEM, or MUSTER_ETOOBIG if there are keys_max other keys. */
/* Adds the key at the end, as soon as possible. */
int queue_add(struct queue *queue, const char *key, int64_t now_ms);
/* Adds the key for that time or later; of two times the earlier one counts. */
int queue_add_at(struct queue *queue, const char *key, int64_t at_ms);

/* Takes the first key that is due and may be taken; NULL: none. Borrowed until queue_remove. */
const char *queue_take(struct queue *queue, int64_t now_ms);
/* A key that was taken may be taken again. */
void queue_release(struct queue *queue, const char *key, int64_t now_ms);

/* The key failed: it is due again after first_ms, and after twice as long each further time, up to
 * QUEUE_RETRY_MAX_MS; never before at_least_ms are over; and up to a quarter later, which differs
 * by key. `unheard`: it failed because the server did not answer. */
int queue_retry(struct queue *queue, const char *key, int64_t now_ms, int64_t first_ms,
                int64_t at_least_ms, bool unheard);
/* The server answers again: keys that failed unheard are due within QUEUE_HEARD_WITHIN_MS, each at
 * a time of its own. */
void queue_heard(struct queue *queue, int64_t now_ms);
/* The key did not fail: the next failure counts as the first. */
void queue_succeeded(struct queue *queue, const char *key);

/* Returns how often the key has failed since its last success. */
int queue_failures(const struct queue *queue, const char *key);

/* Forgets the key, which must not be taken. */
void queue_remove(struct queue *queue, const char *key);

/* Returns when the next key that may be taken is due: INT64_MIN at once, INT64_MAX never (or when
 * another one is released). */
int64_t queue_next(const struct queue *queue);
/* Returns how many keys are taken, ready, or waiting for a time. */
size_t queue_busy(const struct queue *queue);
