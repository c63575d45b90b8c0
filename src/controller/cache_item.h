/* One object as the cache keeps it: a single allocation, with its document as text.
 *
 * Layer: pure, private to cache.c. Ownership: an item is the cache's, and freed by free().
 */
#pragma once

#include "control/control.h"

#include <uthash.h>

enum { CACHE_ID_BYTES = 1024 };

struct cache_item {
    struct cache_group *group;      /* NULL: a job */
    struct cache_item *prev, *next; /* others of its kind in the group */
    UT_hash_handle hh;              /* in all items, by id */
    enum control_resource resource;
    unsigned listing; /* the number of the listing that last showed it */
    bool gone;        /* it has a deletionTimestamp */
    bool finished;    /* of a job: its state is final */
    bool packed;      /* of a job: its document was dropped */
    size_t size_bytes;
    const char *id;
    const char *job; /* "namespace/name" of the job it belongs to; "" for a claim */
    const char *uid;
    const char *version;
    const char *document; /* the whole job, unless it is packed; otherwise the projection */
    char texts[];         /* holds all these texts */
};

/* Writes the key by which an object is found: its resource, namespace and name. Returns ret_id. */
const char *cache_item_id(enum control_resource resource, const char *namespace, const char *name,
                          char ret_id[CACHE_ID_BYTES]);

/* Copies the texts. Returns NULL without memory. */
struct cache_item *cache_item_new(enum control_resource resource, const char *id, const char *job,
                                  const char *uid, const char *version, const char *document);

/* Returns what is kept of an object, as text: the whole job, or what the core reads of another
 * object (control/projection). The caller frees it; NULL without memory. */
char *cache_item_document(enum control_resource resource, const json_t *object);

/* Returns the document as a tree, a new reference; NULL without memory. */
json_t *cache_item_parse(const struct cache_item *item);
