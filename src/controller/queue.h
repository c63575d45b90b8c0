/* Keys ("namespace/name") that wait for a step: each is there once, in the order in which it came
 * to its namespace; the namespaces take turns, and one of them does not have all that are taken
 * (controller/fair_share.h). A key that was taken is given out again only after its release, also
 * when it was added meanwhile; one that fails waits longer each time.
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
    struct queue_namespace *waiting;    /* those that have items that are ready, in turn */
    struct queue_item **heap;           /* those that wait for a time: the earliest first */
    size_t heap_count, heap_room;
    size_t ready_count, taken_count;
    size_t keys_max, taken_max;
    uint64_t adds, retries;  /* since queue_init */
    struct histogram waited; /* of each that was taken: since it was added, or due */
    struct histogram worked; /* of each that was released: since it was taken */
};

void queue_init(struct queue *queue, size_t keys_max, size_t taken_max);
void queue_done(struct queue *queue);

/* Both return 0, MUSTER_ENOMEM, or MUSTER_ETOOBIG when there are keys_max others. */
/* Adds the key at the end, as soon as possible. */
int queue_add(struct queue *queue, const char *key, int64_t now_ms);
/* Adds the key for a time, not before; of two times the earlier one counts. */
int queue_add_at(struct queue *queue, const char *key, int64_t at_ms);

/* The first that is due and may be taken, taken; NULL: none. Borrowed until queue_remove. */
const char *queue_take(struct queue *queue, int64_t now_ms);
/* What was taken may be given out again. */
void queue_release(struct queue *queue, const char *key, int64_t now_ms);

/* It failed: again after first_ms, and twice as long each further time, up to QUEUE_RETRY_MAX_MS;
 * never before at_least_ms are over; and up to a quarter later, which differs by key. `unheard`: as
 * the server did not answer. */
int queue_retry(struct queue *queue, const char *key, int64_t now_ms, int64_t first_ms,
                int64_t at_least_ms, bool unheard);
/* The server answers again: those that failed unheard go within QUEUE_HEARD_WITHIN_MS, each at a
 * time of its own. */
void queue_heard(struct queue *queue, int64_t now_ms);
/* It did not fail: the next failure is the first. */
void queue_succeeded(struct queue *queue, const char *key);

/* How often it has failed since it last did not. */
int queue_failures(const struct queue *queue, const char *key);

/* The key is forgotten; not while it is taken. */
void queue_remove(struct queue *queue, const char *key);

/* When the next key is due that may be taken: INT64_MIN at once, INT64_MAX never (or when another
 * one is released). */
int64_t queue_next(const struct queue *queue);
/* How many are taken or will be given out. */
size_t queue_busy(const struct queue *queue);
