/* Strategic merge patch, as far as kubectl apply, label, annotate and edit need it. See merge.h.
 *
 * Source: sig-api-machinery/strategic-merge-patch.md. The keys by which lists are merged are in
 * Kubernetes' OpenAPI; those of the kinds served here are in the table below. A list that is not in
 * it is replaced as a whole.
 */
#include "api/patch/merge.h"

#include "base/cleanup.h"
#include "base/doc.h"

#include <string.h>

#define ORDER_PREFIX "$setElementOrder/"
#define DELETE_PREFIX "$deleteFromPrimitiveList/"

static const struct list_key {
    const char *list;
    const char *key; /* NULL: a set of plain values */
} list_keys[] = {
    {"containers", "name"},
    {"initContainers", "name"},
    {"ephemeralContainers", "name"},
    {"volumes", "name"},
    {"env", "name"},
    {"imagePullSecrets", "name"},
    {"secrets", "name"},
    {"volumeMounts", "mountPath"},
    {"volumeDevices", "devicePath"},
    {"hostAliases", "ip"},
    {"ownerReferences", "uid"},
    {"conditions", "type"},
    {"taints", "key"},
    {"topologySpreadConstraints", "topologyKey"},
    {"podIPs", "ip"},
    {"finalizers", NULL},
};

static int merge_object(json_t *into, const json_t *patch, int depth);

enum { DEPTH_MAX = 128 };

/* Containers' ports are merged by containerPort, a Service's by port. */
static const char *ports_key(const json_t *patch_list)
{
    return json_object_get(json_array_get(patch_list, 0), "containerPort") ? "containerPort"
                                                                           : "port";
}

static bool find_list_key(const char *list, const json_t *patch, const char **ret)
{
    if (strcmp(list, "ports") == 0) {
        *ret = ports_key(patch);
        return true;
    }
    for (size_t i = 0; i < sizeof list_keys / sizeof list_keys[0]; i++) {
        if (strcmp(list_keys[i].list, list) == 0) {
            *ret = list_keys[i].key;
            return true;
        }
    }
    return false;
}

/* Returns the index of the item whose key has the same value, or the size if there is none. */
static size_t find_item(const json_t *list, const char *key, const json_t *like)
{
    const json_t *wanted = key ? json_object_get(like, key) : like;
    size_t i;
    json_t *item;
    json_array_foreach (list, i, item) {
        const json_t *has = key ? json_object_get(item, key) : item;
        if (has && wanted && json_equal(has, wanted)) {
            break;
        }
    }
    return i;
}

static const char *directive(const json_t *value)
{
    return doc_text(value, "$patch", "");
}

static int merge_item(json_t *into, const char *key, const json_t *item, int depth)
{
    size_t place = find_item(into, key, item);
    bool there = place < json_array_size(into);
    if (strcmp(directive(item), "delete") == 0) {
        return there ? json_array_remove(into, place) : 0;
    }
    if (!there) {
        json_t *fresh = json_is_object(item) ? json_object() : json_deep_copy(item);
        if (json_array_append_new(into, fresh) != 0) {
            return -1;
        }
        place = json_array_size(into) - 1;
    }
    return json_is_object(item) ? merge_object(json_array_get(into, place), item, depth) : 0;
}

static bool replaces_list(const json_t *patch)
{
    size_t i;
    json_t *item;
    json_array_foreach (patch, i, item) {
        if (strcmp(directive(item), "replace") == 0) {
            return true;
        }
    }
    return false;
}

static int merge_list(json_t *into, const char *key, const json_t *patch, int depth)
{
    bool replaces = replaces_list(patch);
    if (replaces) {
        json_array_clear(into);
    }
    size_t i;
    json_t *item;
    json_array_foreach (patch, i, item) {
        bool marker = replaces && strcmp(directive(item), "replace") == 0;
        if (!marker && merge_item(into, key, item, depth) < 0) {
            return -1;
        }
    }
    return 0;
}

static int delete_values(json_t *list, const json_t *values)
{
    size_t i;
    json_t *value;
    json_array_foreach (values, i, value) {
        size_t place = find_item(list, NULL, value);
        if (place < json_array_size(list)) {
            json_array_remove(list, place);
        }
    }
    return 0;
}

static int keep_only(json_t *object, const json_t *names)
{
    const char *key;
    json_t *value;
    void *next;
    json_object_foreach_safe (object, next, key, value) {
        muster_auto(doc) json_t *name = json_string(key);
        if (find_item(names, NULL, name) == json_array_size(names)) {
            json_object_del(object, key);
        }
    }
    return 0;
}

/* Puts the items that `order` names first, in that order; the others follow in their old order. */
static int sort_list(json_t *list, const char *key, const json_t *order)
{
    size_t done = 0;
    size_t i;
    json_t *wanted;
    json_array_foreach (order, i, wanted) {
        size_t place = find_item(list, key, wanted);
        if (place >= json_array_size(list) || place < done) {
            continue;
        }
        json_t *item = json_incref(json_array_get(list, place));
        json_array_remove(list, place);
        if (json_array_insert_new(list, done++, item) != 0) {
            return -1;
        }
    }
    return 0;
}

/* Applies "$…" keys that are about a member; returns true if `key` was such a key. */
static bool obey(json_t *into, const char *key, const json_t *value, int *ret)
{
    const char *list_key = NULL;
    if (strncmp(key, DELETE_PREFIX, strlen(DELETE_PREFIX)) == 0) {
        *ret = delete_values(json_object_get(into, key + strlen(DELETE_PREFIX)), value);
    } else if (strncmp(key, ORDER_PREFIX, strlen(ORDER_PREFIX)) == 0) {
        const char *name = key + strlen(ORDER_PREFIX);
        json_t *list = json_object_get(into, name);
        *ret = find_list_key(name, list, &list_key) ? sort_list(list, list_key, value) : 0;
    } else if (strcmp(key, "$retainKeys") == 0) {
        *ret = keep_only(into, value);
    } else {
        return strcmp(key, "$patch") == 0;
    }
    return true;
}

static int merge_member(json_t *into, const char *key, const json_t *value, int depth)
{
    const char *list_key = NULL;
    json_t *there = json_object_get(into, key);
    if (json_is_null(value) || strcmp(directive(value), "delete") == 0) {
        json_object_del(into, key);
        return 0;
    }
    if (json_is_object(value)) {
        if (!json_is_object(there) || strcmp(directive(value), "replace") == 0) {
            there = json_object();
            if (json_object_set_new(into, key, there) != 0) {
                return -1;
            }
        }
        return merge_object(there, value, depth);
    }
    if (json_is_array(value) && find_list_key(key, value, &list_key)) {
        if (!json_is_array(there)) {
            there = json_array();
            if (json_object_set_new(into, key, there) != 0) {
                return -1;
            }
        }
        return merge_list(there, list_key, value, depth);
    }
    return json_object_set_new(into, key, json_deep_copy(value));
}

/* Members are merged before the $ keys about them ($setElementOrder needs the merged list). */
static int merge_object(json_t *into, const json_t *patch, int depth)
{
    const char *key;
    json_t *value;
    int r = depth > 0 ? 0 : -1;
    if (r == 0 && strcmp(directive(patch), "replace") == 0) {
        json_object_clear(into);
    }
    json_object_foreach ((json_t *)patch, key, value) {
        if (r == 0 && *key != '$') {
            r = merge_member(into, key, value, depth - 1);
        }
    }
    json_object_foreach ((json_t *)patch, key, value) {
        if (r == 0 && *key == '$' && !obey(into, key, value, &r)) {
            r = -1;
        }
    }
    return r;
}

int strategic_patch(const json_t *doc, const json_t *patch, json_t **ret, struct muster_err *err)
{
    if (!json_is_object(patch)) {
        return muster_fail(err, MUSTER_EINVAL, "a strategic merge patch must be a JSON object");
    }
    muster_auto(doc) json_t *result = json_deep_copy(doc);
    if (!result || merge_object(result, patch, DEPTH_MAX) < 0) {
        return muster_fail(
            err, MUSTER_EDATA,
            "the strategic merge patch cannot be applied: an unknown $ directive, or "
            "nested too deep; use --type=merge");
    }
    *ret = muster_take(result);
    return 0;
}
