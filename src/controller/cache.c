/* See cache.h. */
#include "controller/cache.h"

#include "base/doc.h"
#include "controller/cache_item.h"
#include "controller/cluster.h"
#include "controller/planted.h"
#include "job/job.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

struct cache_group {
    struct cache_item *items[CONTROL_RESOURCES];
    UT_hash_handle hh;
    char owner[];
};

void cache_init(struct cache *c, size_t objects_max)
{
    *c = (struct cache){.objects_max = objects_max};
}

/* ---- items and groups ---- */

static void leave_group(struct cache *c, struct cache_item *item)
{
    struct cache_group *group = item->group;
    if (!group) {
        return;
    }
    DL_DELETE(group->items[item->resource], item);
    bool empty = true;
    for (int i = 0; i < CONTROL_RESOURCES; i++) {
        empty = empty && !group->items[i];
    }
    if (empty) {
        HASH_DEL(c->groups, group);
        free(group);
    }
}

static void drop(struct cache *c, struct cache_item *item)
{
    leave_group(c, item);
    HASH_DEL(c->items, item);
    c->bytes -= item->size_bytes;
    free(item);
}

void cache_done(struct cache *c)
{
    struct cache_item *item, *next;
    HASH_ITER (hh, c->items, item, next) {
        drop(c, item);
    }
    *c = (struct cache){0};
}

static struct cache_group *group_of(struct cache *c, const char *owner)
{
    struct cache_group *group = NULL;
    HASH_FIND_STR(c->groups, owner, group);
    if (!group) {
        size_t bytes = strlen(owner) + 1;
        group = calloc(1, sizeof *group + bytes);
        if (group) {
            memcpy(group->owner, owner, bytes);
            HASH_ADD_STR(c->groups, owner, group);
        }
    }
    return group;
}

static struct cache_item *find(const struct cache *c, const char *id)
{
    struct cache_item *item = NULL;
    HASH_FIND_STR(c->items, id, item);
    return item;
}

static struct cache_item *find_job(const struct cache *c, const char *key)
{
    char id[CACHE_ID_BYTES];
    snprintf(id, sizeof id, "%c%s", 'a' + CONTROL_JOB, key);
    return find(c, id);
}

/* ---- changes ---- */

/* Returns the PyTorchJob that controls the object; NULL: there is none. */
static const json_t *owner_of(const json_t *object)
{
    size_t index;
    json_t *each;
    json_array_foreach (doc_at(object, "metadata.ownerReferences"), index, each) {
        if (doc_bool(each, "controller", false)) {
            return strcmp(doc_text(each, "kind", ""), "PyTorchJob") == 0 ? each : NULL;
        }
    }
    return NULL;
}

static void describe(enum control_resource resource, const json_t *object, struct cache_change *ret)
{
    const char *namespace = doc_text(object, "metadata.namespace", "");
    const json_t *owner = owner_of(object);
    const char *job = resource == CONTROL_JOB ? doc_text(object, "metadata.name", "")
                                              : doc_text(owner, "name", "");
    *ret = (struct cache_change){
        .name = doc_text(object, "metadata.name", ""),
        .uid = doc_text(object, "metadata.uid", ""),
        .version = doc_text(object, "metadata.resourceVersion", ""),
        .gone = doc_at(object, "metadata.deletionTimestamp") != NULL,
        .changed = resource == CONTROL_CLAIM || *job,
    };
    if (*job && resource != CONTROL_CLAIM) {
        snprintf(ret->job, sizeof ret->job, "%s/%s", namespace, job);
    }
}

/* Puts the item in the place of `old`, which may be NULL. */
static int insert(struct cache *c, struct cache_item *item, struct cache_item *old,
                  const char *owner)
{
    struct cache_group *group = owner ? group_of(c, owner) : NULL;
    if (owner && !group) {
        free(item);
        return MUSTER_ENOMEM;
    }
    item->group = group;
    item->listing = PLANTED_DRIVER(LISTED_IS_UNSEEN) ? 0 : c->listings[item->resource].number;
    if (group) {
        DL_APPEND(group->items[item->resource], item);
    }
    if (old) {
        drop(c, old);
    }
    HASH_ADD_KEYPTR(hh, c->items, item->id, strlen(item->id), item);
    c->bytes += item->size_bytes;
    return 0;
}

static bool is_older(const struct cache *c, const struct cache_item *old,
                     const struct cache_change *new)
{
    return old && !c->listings[old->resource].under_way && strcmp(old->uid, new->uid) == 0 &&
           cluster_version_compare(new->version, old->version) < 0;
}

int cache_put(struct cache *c, enum control_resource resource, const json_t *object,
              struct cache_change *ret)
{
    char id[CACHE_ID_BYTES];
    const char *namespace = doc_text(object, "metadata.namespace", "");
    describe(resource, object, ret);
    struct cache_item *old = find(c, cache_item_id(resource, namespace, ret->name, id));
    if (!ret->changed || is_older(c, old, ret)) {
        if (old && !ret->changed) { /* its owner has released it */
            snprintf(ret->job, sizeof ret->job, "%s", old->job);
            ret->changed = ret->gone = true;
            drop(c, old);
        }
        return 0;
    }
    if (!old && HASH_COUNT(c->items) >= c->objects_max) {
        return MUSTER_ETOOBIG;
    }
    char *document = cache_item_document(resource, object);
    struct cache_item *item =
        document ? cache_item_new(resource, id, ret->job, ret->uid, ret->version, document) : NULL;
    free(document);
    if (!item) {
        return MUSTER_ENOMEM;
    }
    item->gone = ret->gone;
    item->finished =
        resource == CONTROL_JOB && (!control_manages(object) || job_is_finished(object));
    const char *owner =
        resource == CONTROL_CLAIM ? namespace : doc_text(owner_of(object), "uid", "");
    return insert(c, item, old, resource == CONTROL_JOB ? NULL : owner);
}

void cache_remove(struct cache *c, enum control_resource resource, const json_t *object,
                  struct cache_change *ret)
{
    char id[CACHE_ID_BYTES];
    describe(resource, object, ret);
    struct cache_item *item =
        find(c, cache_item_id(resource, doc_text(object, "metadata.namespace", ""), ret->name, id));
    ret->gone = true;
    if (item && strcmp(item->uid, ret->uid) == 0) {
        drop(c, item);
    }
}

/* ---- listings ---- */

void cache_begin(struct cache *c, enum control_resource resource)
{
    c->listings[resource].under_way = true;
    c->listings[resource].number++;
}

void cache_synced(struct cache *c, enum control_resource resource, cache_gone_fn *gone, void *arg)
{
    struct cache_listing *listing = &c->listings[resource];
    struct cache_item *item, *next;
    HASH_ITER (hh, c->items, item, next) {
        if (item->resource == resource && item->listing != listing->number &&
            !PLANTED_DRIVER(UNSEEN_STAYS)) {
            char job[sizeof((struct cache_change *)NULL)->job];
            snprintf(job, sizeof job, "%s", item->job);
            drop(c, item);
            gone(arg, job);
        }
    }
    listing->under_way = false;
    listing->synced = true;
    listing->absent = false;
}

void cache_set_absent(struct cache *c, enum control_resource resource)
{
    c->listings[resource].absent = true;
}

bool cache_is_absent(const struct cache *c, enum control_resource resource)
{
    return c->listings[resource].absent;
}

bool cache_is_synced(const struct cache *c)
{
    for (int i = 0; i < CONTROL_RESOURCES; i++) {
        if (!c->listings[i].synced && !c->listings[i].absent) {
            return false;
        }
    }
    return true;
}

/* ---- asking ---- */

bool cache_job(const struct cache *c, const char *key, struct cache_job *ret)
{
    const struct cache_item *item = find_job(c, key);
    if (item) {
        *ret = (struct cache_job){item->uid, item->version, item->finished, item->packed};
    }
    return item != NULL;
}

json_t *cache_job_object(const struct cache *c, const char *key)
{
    const struct cache_item *item = find_job(c, key);
    return item && !item->packed ? cache_item_parse(item) : NULL;
}

void cache_pack_job(struct cache *c, const char *key)
{
    struct cache_item *item = find_job(c, key);
    if (!item || item->packed || !item->finished) {
        return;
    }
    struct cache_item *small =
        cache_item_new(CONTROL_JOB, item->id, item->job, item->uid, item->version, "");
    if (small) {
        small->gone = item->gone;
        small->finished = small->packed = true;
        unsigned listing = item->listing; /* this listing does not show it again */
        insert(c, small, item, NULL);
        small->listing = listing;
    }
}

json_t *cache_list(const struct cache *c, enum control_resource resource, const char *owner)
{
    struct cache_group *group = NULL;
    json_t *list = json_array();
    HASH_FIND_STR(c->groups, owner, group);
    for (struct cache_item *item = group ? group->items[resource] : NULL; item && list;
         item = item->next) {
        if (json_array_append_new(list, cache_item_parse(item)) != 0) {
            json_decref(list);
            list = NULL;
        }
    }
    return list;
}

static const struct cache_item *find_uid(const struct cache *c, enum control_resource resource,
                                         const char *namespace, const char *name, const char *uid)
{
    char id[CACHE_ID_BYTES];
    const struct cache_item *item = find(c, cache_item_id(resource, namespace, name, id));
    return item && strcmp(item->uid, uid) == 0 ? item : NULL;
}

bool cache_has(const struct cache *c, enum control_resource resource, const char *namespace,
               const char *name, const char *uid)
{
    const struct cache_item *item = find_uid(c, resource, namespace, name, uid);
    return item && !item->gone;
}

bool cache_shows_end(const struct cache *c, const char *namespace, const struct control_effect *e)
{
    return e->node ? !find_uid(c, e->resource, namespace, e->name, e->uid)
                   : !cache_has(c, e->resource, namespace, e->name, e->uid);
}

bool cache_is_of(const struct cache *c, enum control_resource resource, const char *namespace,
                 const char *name, const char *owner)
{
    char id[CACHE_ID_BYTES];
    const struct cache_item *item = find(c, cache_item_id(resource, namespace, name, id));
    return item && item->group && strcmp(item->group->owner, owner) == 0;
}

bool cache_has_version(const struct cache *c, enum control_resource resource, const char *namespace,
                       const char *name, const char *version)
{
    char id[CACHE_ID_BYTES];
    const struct cache_item *item = find(c, cache_item_id(resource, namespace, name, id));
    return item && cluster_version_compare(item->version, version) >= 0;
}

void cache_each_live_job(const struct cache *c, cache_job_fn *fn, void *arg)
{
    for (const struct cache_item *item = c->items; item; item = item->hh.next) {
        if (item->resource == CONTROL_JOB && !item->finished) {
            fn(arg, item->job);
        }
    }
}

size_t cache_live_jobs(const struct cache *c)
{
    size_t count = 0;
    for (const struct cache_item *item = c->items; item; item = item->hh.next) {
        count += item->resource == CONTROL_JOB && !item->finished;
    }
    return count;
}
