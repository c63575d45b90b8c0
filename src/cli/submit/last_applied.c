/* See last_applied.h. */
#include "cli/submit/last_applied.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/doc.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES_MAX = 4 << 20, DEPTH_MAX = 128 };

/* ---- The annotation ---- */

static int by_name(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static json_t *sorted(const json_t *value, int depth);

static json_t *sorted_object(const json_t *object, int depth)
{
    size_t count = 0;
    muster_auto(doc) json_t *result = json_object();
    muster_auto(free) const char **keys = calloc(json_object_size(object) + 1, sizeof *keys);
    const char *key;
    json_t *value;
    if (!result || !keys) {
        return NULL;
    }
    json_object_foreach ((json_t *)object, key, value) {
        keys[count++] = key;
    }
    qsort(keys, count, sizeof *keys, by_name);
    for (size_t i = 0; i < count; i++) {
        json_t *member = sorted(json_object_get(object, keys[i]), depth - 1);
        if (json_object_set_new(result, keys[i], member) < 0) {
            return NULL;
        }
    }
    return muster_take(result);
}

/* Returns the value with sorted keys, as Go prints maps. */
static json_t *sorted(const json_t *value, int depth)
{
    assert(depth > 0); /* readers refuse deeper values */
    if (json_is_object(value)) {
        return sorted_object(value, depth);
    }
    if (!json_is_array(value)) {
        return json_incref((json_t *)value);
    }
    muster_auto(doc) json_t *list = json_array();
    size_t i;
    json_t *item;
    json_array_foreach (value, i, item) {
        if (json_array_append_new(list, sorted(item, depth - 1)) < 0) {
            return NULL;
        }
    }
    return muster_take(list);
}

/* Escapes what Go's encoder escapes because HTML would interpret it. */
static char *escaped(const char *text)
{
    struct buf out;
    buf_init(&out, TEXT_BYTES_MAX);
    for (const char *c = text; *c; c++) {
        if (*c == '<' || *c == '>' || *c == '&') {
            buf_format(&out, "\\u%04x", (unsigned)*c);
        } else {
            buf_add(&out, c, 1);
        }
    }
    buf_text(&out, "\n");
    return buf_steal(&out);
}

/* Removes the annotation itself and keeps the map, even if it is empty, as kubectl does. */
static int strip_note(json_t *object)
{
    json_t *notes = doc_at(object, "metadata.annotations");
    if (!json_is_object(notes)) {
        return doc_set(object, "metadata.annotations", json_object());
    }
    json_object_del(notes, LAST_APPLIED_ANNOTATION);
    return 0;
}

char *last_applied_print(const json_t *object)
{
    muster_auto(doc) json_t *copy = json_deep_copy(object);
    if (!copy || strip_note(copy) < 0) {
        return NULL;
    }
    muster_auto(doc) json_t *ordered = sorted(copy, DEPTH_MAX);
    muster_auto(free) char *text = ordered ? doc_print(ordered) : NULL;
    return text ? escaped(text) : NULL;
}

/* ---- The patch ---- */

static json_t *patch_of(const json_t *last, const json_t *current, const json_t *wanted, int depth);

static int drop_missing(const json_t *last, const json_t *current, const json_t *wanted,
                        json_t *patch)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)last, key, value) {
        bool there = json_object_get(current, key) && !json_is_null(json_object_get(current, key));
        if (there && !json_object_get(wanted, key) &&
            json_object_set_new(patch, key, json_null()) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Adds one member that the file gives to the patch. */
static int add_member(const json_t *last, const json_t *there, const char *key, json_t *value,
                      json_t *patch, int depth)
{
    if (!json_is_object(value) || !json_is_object(there)) {
        return json_equal(there, value) ? 0 : json_object_set(patch, key, value);
    }
    json_t *inner = patch_of(json_object_get(last, key), there, value, depth - 1);
    if (json_object_size(inner) > 0) {
        return json_object_set_new(patch, key, inner);
    }
    json_decref(inner);
    return inner ? 0 : -1;
}

static json_t *patch_of(const json_t *last, const json_t *current, const json_t *wanted, int depth)
{
    assert(depth > 0);
    muster_auto(doc) json_t *patch = json_object();
    const char *key;
    json_t *value;
    if (!patch || drop_missing(last, current, wanted, patch) < 0) {
        return NULL;
    }
    json_object_foreach ((json_t *)wanted, key, value) {
        if (add_member(last, json_object_get(current, key), key, value, patch, depth) < 0) {
            return NULL;
        }
    }
    return muster_take(patch);
}

json_t *last_applied_patch(const json_t *last, const json_t *current, const json_t *wanted)
{
    return patch_of(last, current, wanted, DEPTH_MAX);
}
