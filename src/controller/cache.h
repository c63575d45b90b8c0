/* The objects that watches have shown: whole jobs, and those parts of pods, Services and claims
 * that the core reads (control/projection). Each object is one allocation, with its document as
 * text, which becomes a tree only for a step.
 *
 * Pods and Services are found by the uid of the job that controls them, claims by their namespace.
 * Objects that no PyTorchJob controls are not kept.
 *
 * Layer: pure. Ownership: cache_init/cache_done; what it returns is borrowed until the next change,
 * trees are new references.
 */
#pragma once

#include "control/control.h"

struct cache_item;

struct cache {
    struct cache_item *items;   /* by resource, namespace and name */
    struct cache_group *groups; /* groups of items, by owner */
    size_t objects_max;
    size_t bytes;
    struct cache_listing {
        bool synced;     /* listed completely at least once */
        bool absent;     /* not watched, not served, or not readable */
        bool under_way;  /* a listing is in progress */
        unsigned number; /* of the latest listing */
    } listings[CONTROL_RESOURCES];
};

/* What a change concerned. */
struct cache_change {
    bool changed;        /* false: it concerned nothing that the cache keeps */
    char job[512];       /* "namespace/name" of the job it belongs to; "" for a claim */
    const char *name;    /* borrowed from the object */
    const char *uid;     /* … */
    const char *version; /* … */
    bool gone;           /* gone or being deleted: it has a deletionTimestamp */
};

void cache_init(struct cache *cache, size_t objects_max);
void cache_done(struct cache *cache);

/* A listing begins, and is complete: objects that were not put in between are removed, and `gone`
 * is called for each of them ("namespace/name" of its job). */
void cache_begin(struct cache *cache, enum control_resource resource);
typedef void cache_gone_fn(void *arg, const char *job);
void cache_synced(struct cache *cache, enum control_resource resource, cache_gone_fn *gone,
                  void *arg);
/* Says that no objects of this kind need to be waited for, until they are listed after all. */
void cache_set_absent(struct cache *cache, enum control_resource resource);
bool cache_is_absent(const struct cache *cache, enum control_resource resource);
/* Whether all resources that exist here were listed. */
bool cache_is_synced(const struct cache *cache);

/* Puts an object in its present state, or removes one in its last state. A state older than the
 * known one is ignored. Returns MUSTER_ENOMEM, or MUSTER_ETOOBIG if there are objects_max
 * others. */
int cache_put(struct cache *cache, enum control_resource resource, const json_t *object,
              struct cache_change *ret);
void cache_remove(struct cache *cache, enum control_resource resource, const json_t *object,
                  struct cache_change *ret);

/* What the cache knows about a job. */
struct cache_job {
    const char *uid;
    const char *version;
    bool finished; /* its state is final: job_is_finished, or managed by another controller */
    bool packed;   /* the rest was dropped */
};
bool cache_job(const struct cache *cache, const char *key, struct cache_job *ret);
/* Returns the whole job as a new reference; NULL without memory, or if the job is packed. */
json_t *cache_job_object(const struct cache *cache, const char *key);
/* Packs a finished job for which nothing is left to do: its key, uid and version are kept. */
void cache_pack_job(struct cache *cache, const char *key);

/* Returns the projections of the owner's objects; owner: the job's uid, for claims their namespace.
 * A new reference, NULL without memory. */
json_t *cache_list(const struct cache *cache, enum control_resource resource, const char *owner);

/* Whether an object with this uid is known and is not being deleted. */
bool cache_has(const struct cache *cache, enum control_resource resource, const char *namespace,
               const char *name, const char *uid);

/* Whether the cache shows what this deletion achieves: the object is being deleted or gone; for a
 * deletion by force, it is gone. It may have been in deletion before. */
bool cache_shows_end(const struct cache *cache, const char *namespace,
                     const struct control_effect *effect);

/* Whether the object is known as that owner's (see cache_list), whatever its uid. */
bool cache_is_of(const struct cache *cache, enum control_resource resource, const char *namespace,
                 const char *name, const char *owner);

/* Whether the object is known in that version or a newer one. */
bool cache_has_version(const struct cache *cache, enum control_resource resource,
                       const char *namespace, const char *name, const char *version);

/* Called for each job that is not finished, with its key. */
typedef void cache_job_fn(void *arg, const char *key);
void cache_each_live_job(const struct cache *cache, cache_job_fn *fn, void *arg);
/* Returns how many jobs are not finished. */
size_t cache_live_jobs(const struct cache *cache);
