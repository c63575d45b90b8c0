/* What watches have shown: jobs whole, and of pods, Services and claims what the core reads
 * (control/projection). Everything is packed: one allocation an object, its document as text, which
 * becomes a tree for a step only.
 *
 * Pods and Services are found by the uid of the job that controls them, claims by their namespace.
 * What is controlled by no PyTorchJob is not kept.
 *
 * Layer: pure. Ownership: cache_init/cache_done; what it returns is borrowed until the next change,
 * trees are new references.
 */
#pragma once

#include "control/control.h"

struct cache_item;

struct cache {
    struct cache_item *items;   /* by resource, namespace and name */
    struct cache_group *groups; /* of items, by owner */
    size_t objects_max;
    size_t bytes;
    struct cache_listing {
        bool synced;     /* listed whole, once at least */
        bool absent;     /* there is none such: not watched, not served, or not to be read */
        bool under_way;  /* a listing is */
        unsigned number; /* of the listing */
    } listings[CONTROL_RESOURCES];
};

/* What a change was about. */
struct cache_change {
    bool changed;        /* false: nothing that we keep */
    char job[512];       /* "namespace/name" of the job it belongs to; "" for a claim */
    const char *name;    /* borrowed from the object */
    const char *uid;     /* … */
    const char *version; /* … */
    bool gone;           /* or on its way: it has a deletionTimestamp */
};

void cache_init(struct cache *cache, size_t objects_max);
void cache_done(struct cache *cache);

/* A listing begins, and is complete: what was not put in between is removed, `gone` is told of each
 * ("namespace/name" of its job). */
void cache_begin(struct cache *cache, enum control_resource resource);
typedef void cache_gone_fn(void *arg, const char *job);
void cache_synced(struct cache *cache, enum control_resource resource, cache_gone_fn *gone,
                  void *arg);
/* Nothing of it is to be waited for, until it is listed after all. */
void cache_set_absent(struct cache *cache, enum control_resource resource);
bool cache_is_absent(const struct cache *cache, enum control_resource resource);
/* Has everything been listed that is there? */
bool cache_is_synced(const struct cache *cache);

/* An object as it is now, or as it was last. An older state than the one that is known is ignored.
 * MUSTER_ENOMEM; MUSTER_ETOOBIG: there are objects_max others. */
int cache_put(struct cache *cache, enum control_resource resource, const json_t *object,
              struct cache_change *ret);
void cache_remove(struct cache *cache, enum control_resource resource, const json_t *object,
                  struct cache_change *ret);

/* What is known of a job. */
struct cache_job {
    const char *uid;
    const char *version;
    bool finished; /* nothing more comes of it: job_is_finished, or managed by somebody else */
    bool packed;   /* the rest was forgotten */
};
bool cache_job(const struct cache *cache, const char *key, struct cache_job *ret);
/* All of it: a new reference; NULL without memory, and of a job that is packed. */
json_t *cache_job_object(const struct cache *cache, const char *key);
/* A finished job with which nothing is to be done: key, uid and version are enough. */
void cache_pack_job(struct cache *cache, const char *key);

/* The projections; owner: the job's uid, for claims their namespace. New reference, NULL without
 * memory. */
json_t *cache_list(const struct cache *cache, enum control_resource resource, const char *owner);

/* Is that object known, not as one that is on its way out, with this uid? */
bool cache_has(const struct cache *cache, enum control_resource resource, const char *namespace,
               const char *name, const char *uid);

/* Is what this effect deletes no more, as far as it goes by that: on its way out, or, by force,
 * gone? It may have been on its way out before. */
bool cache_shows_end(const struct cache *cache, const char *namespace,
                     const struct control_effect *effect);

/* … whatever its uid, as that owner's (see cache_list)? */
bool cache_is_of(const struct cache *cache, enum control_resource resource, const char *namespace,
                 const char *name, const char *owner);

/* Is that object known in that state, or a newer one? */
bool cache_has_version(const struct cache *cache, enum control_resource resource,
                       const char *namespace, const char *name, const char *version);

/* Each job that is not finished, by its key. */
typedef void cache_job_fn(void *arg, const char *key);
void cache_each_live_job(const struct cache *cache, cache_job_fn *fn, void *arg);
/* How many jobs are not finished. */
size_t cache_live_jobs(const struct cache *cache);
