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
    struct cache_item *prev, *next; /* of its kind in the group */
    UT_hash_handle hh;              /* of all items, by id */
    enum control_resource resource;
    unsigned listing; /* the number of the one that it was last seen in */
    bool gone;        /* it has a deletionTimestamp */
    bool finished;    /* of a job: nothing more comes of it */
    bool packed;      /* of a job: its document was forgotten */
    size_t size_bytes;
    const char *id;
    const char *job; /* "namespace/name" of the job it belongs to; "" for a claim */
    const char *uid;
    const char *version;
    const char *document; /* of a job all of it, unless it is packed; else its projection */
    char texts[];         /* all of these */
};

/* The key by which an object is found: its resource, namespace and name. Returns ret_id. */
const char *cache_item_id(enum control_resource resource, const char *namespace, const char *name,
                          char ret_id[CACHE_ID_BYTES]);

/* Copies the texts. NULL without memory. */
struct cache_item *cache_item_new(enum control_resource resource, const char *id, const char *job,
                                  const char *uid, const char *version, const char *document);

/* What is kept of an object, as text: all of a job, else what the core reads (control/projection).
 * The caller frees it; NULL without memory. */
char *cache_item_document(enum control_resource resource, const json_t *object);

/* The document as a tree, a new reference; NULL without memory. */
json_t *cache_item_parse(const struct cache_item *item);
