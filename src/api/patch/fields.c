/* See fields.h. */
#include "api/patch/fields.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

enum { PATH_BYTES_MAX = 4096 };

static bool is_leaf(const json_t *value)
{
    return json_object_size(value) == 0;
}

/* Whether only the server writes the field, or it says which object this is. */
static bool is_of_server(const char *key, bool in_metadata)
{
    static const char *const top[] = {"apiVersion", "kind", "status"};
    static const char *const metadata[] = {"name",
                                           "namespace",
                                           "generateName",
                                           "uid",
                                           "generation",
                                           "resourceVersion",
                                           "creationTimestamp",
                                           "deletionTimestamp",
                                           "selfLink",
                                           "deletionGracePeriodSeconds",
                                           "managedFields"};
    return in_metadata ? text_is_any_of(key, metadata, sizeof metadata / sizeof metadata[0])
                       : text_is_any_of(key, top, sizeof top / sizeof top[0]);
}

static int set(json_t *tree, const char *key, json_t *value)
{
    return value && json_object_set_new(tree, key, value) == 0 ? 0 : -1;
}

static int set_field(json_t *tree, const char *key, json_t *value)
{
    muster_auto(free) char *name = NULL;
    if (asprintf(&name, "f:%s", key) < 0) {
        name = NULL;
        json_decref(value);
        return -1;
    }
    return set(tree, name, value);
}

/* ---- of objects ---- */

typedef bool (*is_same)(const json_t *value, const json_t *other);

static bool is_equal(const json_t *value, const json_t *other)
{
    return other && json_equal(value, other);
}

static bool is_covered(const json_t *value, const json_t *other)
{
    const char *key;
    size_t i;
    json_t *member;
    if (json_is_object(value) && json_is_object(other)) {
        json_object_foreach ((json_t *)value, key, member) {
            if (!is_covered(member, json_object_get(other, key))) {
                return false;
            }
        }
        return true;
    }
    if (!json_is_array(value) || json_array_size(value) != json_array_size(other)) {
        return is_equal(value, other);
    }
    json_array_foreach (value, i, member) {
        if (!is_covered(member, json_array_get(other, i))) {
            return false;
        }
    }
    return true;
}

/* Collects fields. `same` NULL: all fields. `depth` 0: the object; 1: a member of it. */
static json_t *collect(const json_t *object, const json_t *other, is_same same, int depth,
                       bool in_metadata)
{
    muster_auto(doc) json_t *tree = json_object();
    const char *key;
    json_t *value;
    int r = tree ? 0 : -1;
    json_object_foreach ((json_t *)object, key, value) {
        const json_t *there = json_is_object(other) ? json_object_get(other, key) : NULL;
        json_t *below = NULL;
        if ((depth == 0 || in_metadata) && is_of_server(key, in_metadata)) {
            continue;
        }
        if (json_is_object(value) && json_object_size(value) > 0) {
            below =
                collect(value, there, same, depth + 1, depth == 0 && strcmp(key, "metadata") == 0);
            r = below ? r : -1;
            if (is_leaf(below)) {
                json_decref(below);
                continue;
            }
        } else if (!same || !same(value, there)) {
            below = json_object();
        } else {
            continue;
        }
        r = set_field(tree, key, below) < 0 ? -1 : r;
    }
    return r == 0 ? muster_take(tree) : NULL;
}

json_t *fields_of(const json_t *object)
{
    return collect(object, NULL, NULL, 0, false);
}

json_t *fields_differing(const json_t *object, const json_t *other)
{
    return collect(object, other, is_equal, 0, false);
}

json_t *fields_not_covered(const json_t *object, const json_t *other)
{
    return collect(object, other, is_covered, 0, false);
}

static void remove_nulls(json_t *object)
{
    const char *key;
    json_t *value;
    void *next;
    json_object_foreach_safe (object, next, key, value) {
        if (json_is_null(value)) {
            json_object_del(object, key);
        } else {
            remove_nulls(value);
        }
    }
}

json_t *fields_without_nulls(const json_t *object)
{
    json_t *copy = json_deep_copy(object);
    remove_nulls(copy);
    return copy;
}

void fields_remove(json_t *object, const json_t *fields)
{
    const char *key;
    json_t *below;
    json_object_foreach ((json_t *)fields, key, below) {
        const char *name = key + 2;
        json_t *value = json_object_get(object, name);
        if (!is_leaf(below) && json_is_object(value)) {
            fields_remove(value, below);
        }
        if (is_leaf(below) || (json_is_object(value) && json_object_size(value) == 0)) {
            json_object_del(object, name);
        }
    }
}

/* ---- of sets ---- */

json_t *fields_in_both(const json_t *a, const json_t *b)
{
    muster_auto(doc) json_t *both = json_object();
    const char *key;
    json_t *in_a;
    int r = both ? 0 : -1;
    json_object_foreach ((json_t *)a, key, in_a) {
        const json_t *in_b = json_object_get(b, key);
        if (!in_b || is_leaf(in_a) != is_leaf(in_b)) {
            continue;
        }
        json_t *below = is_leaf(in_a) ? json_object() : fields_in_both(in_a, in_b);
        if (!is_leaf(in_a) && below && is_leaf(below)) {
            json_decref(below);
            continue;
        }
        r = set(both, key, below) < 0 ? -1 : r;
    }
    return r == 0 ? muster_take(both) : NULL;
}

json_t *fields_without(const json_t *a, const json_t *b)
{
    muster_auto(doc) json_t *left = json_object();
    const char *key;
    json_t *in_a;
    int r = left ? 0 : -1;
    json_object_foreach ((json_t *)a, key, in_a) {
        const json_t *in_b = json_object_get(b, key);
        if (in_b && is_leaf(in_a) && is_leaf(in_b)) {
            continue;
        }
        bool whole = !in_b || is_leaf(in_a) || is_leaf(in_b);
        json_t *below = whole ? json_deep_copy(in_a) : fields_without(in_a, in_b);
        if (!whole && below && is_leaf(below)) {
            json_decref(below);
            continue;
        }
        r = set(left, key, below) < 0 ? -1 : r;
    }
    return r == 0 ? muster_take(left) : NULL;
}

json_t *fields_joined(const json_t *a, const json_t *b)
{
    muster_auto(doc) json_t *joined = json_deep_copy(a);
    return joined && json_object_update_recursive(joined, (json_t *)b) == 0 ? muster_take(joined)
                                                                            : NULL;
}

static int list(const json_t *fields, struct buf *path, int (*each)(void *arg, const char *path),
                void *arg)
{
    const char *key;
    json_t *below;
    int r = 0;
    json_object_foreach ((json_t *)fields, key, below) {
        size_t mark = path->used;
        buf_format(path, ".%s", key + 2);
        r = r < 0 ? r : is_leaf(below) ? each(arg, buf_str(path)) : list(below, path, each, arg);
        buf_truncate(path, mark);
    }
    return r;
}

int fields_list(const json_t *fields, int (*each)(void *arg, const char *path), void *arg)
{
    struct buf path;
    buf_init(&path, PATH_BYTES_MAX);
    int r = list(fields, &path, each, arg);
    buf_done(&path);
    return r;
}
