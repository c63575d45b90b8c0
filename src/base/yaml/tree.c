/* See tree.h. Containers are attached to their parent as soon as they open, so that a document
 * which ends in a syntax error leaves all that was read before it. */
#include "base/yaml/tree.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/yaml/place.h"
#include "base/yaml/scalar.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DUPLICATES_MAX = 256 };

struct yaml_frame {
    json_t *value; /* borrowed: its parent, or tree->discarded, owns it */
    json_t *merge; /* the value of `<<`: a mapping or a list of mappings; owned */
    char *key;     /* the key that waits for its value */
    char *anchor;
    int place;
    struct yaml_place key_place;
    struct yaml_place merge_place; /* of the key that gave `merge` */
    bool has_key;
    bool merging;   /* the key is `<<` */
    bool discarded; /* the waiting value has no place in the document */
};

static int fault(struct yaml_tree *tree, int place, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static int fault(struct yaml_tree *tree, int place, const char *hint, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(tree->text, sizeof tree->text, format, args);
    va_end(args);
    tree->fault = tree->text;
    tree->hint = hint;
    tree->fault_place = place;
    tree->fault_at = (struct yaml_place){0, 0};
    return 0;
}

int yaml_tree_init(struct yaml_tree *tree, struct yaml_budget *budget)
{
    *tree = (struct yaml_tree){.budget = budget};
    tree->places = yaml_places_new();
    tree->frames = calloc((size_t)budget->depth_max, sizeof *tree->frames);
    tree->anchors = json_object();
    tree->discarded = json_array();
    if (!tree->places || !tree->frames || !tree->anchors || !tree->discarded) {
        yaml_tree_done(tree);
        return MUSTER_ENOMEM;
    }
    return 0;
}

static void frame_done(struct yaml_frame *frame)
{
    json_decref(frame->merge);
    free(frame->key);
    free(frame->anchor);
    *frame = (struct yaml_frame){0};
}

void yaml_tree_done(struct yaml_tree *tree)
{
    while (tree->depth > 0) {
        frame_done(&tree->frames[--tree->depth]);
    }
    free(tree->frames);
    json_decref(tree->root);
    json_decref(tree->anchors);
    json_decref(tree->discarded);
    yaml_places_free(tree->places);
    *tree = (struct yaml_tree){0};
}

static struct yaml_frame *top(struct yaml_tree *tree)
{
    return tree->depth > 0 ? &tree->frames[tree->depth - 1] : NULL;
}

static bool awaits_key(struct yaml_tree *tree)
{
    struct yaml_frame *frame = top(tree);
    return frame && json_is_object(frame->value) && !frame->has_key;
}

/* --- keys --- */

/* Returns the place of the first use of the key that `frame` has twice. After many such errors it
 * returns 0, 0: the search is linear, and nobody reads so many errors. */
static struct yaml_place place_of_first(struct yaml_tree *tree, const struct yaml_frame *frame)
{
    if (tree->duplicates == DUPLICATES_MAX) {
        return (struct yaml_place){0, 0};
    }
    tree->duplicates++;
    return yaml_places_get(tree->places, yaml_places_find(tree->places, frame->place, frame->key));
}

static int take_key(struct yaml_tree *tree, const struct yaml_scalar *scalar,
                    struct yaml_place place)
{
    struct yaml_frame *frame = top(tree);
    frame->has_key = true;
    frame->key_place = place.line > 0 ? place : yaml_places_get(tree->places, frame->place);
    frame->merging =
        scalar->quoting == YAML_PLAIN && scalar->length == 2 && memcmp(scalar->text, "<<", 2) == 0;
    frame->key = strndup(scalar->text, scalar->length);
    if (!frame->key) {
        return MUSTER_ENOMEM;
    }
    if (strlen(frame->key) != scalar->length || *frame->key == '\0') {
        frame->discarded = true;
        return fault(tree, frame->place, NULL, "a key must not be empty or hold a NUL byte");
    }
    if (!frame->merging && json_object_get(frame->value, frame->key)) {
        frame->discarded = true;
        struct yaml_place first = place_of_first(tree, frame);
        int where = yaml_places_add(tree->places, frame->place, frame->key, frame->key_place);
        return fault(tree, where, "remove one of them",
                     "duplicate key; the first one, in line %d, is used", first.line);
    }
    return 0;
}

static int refuse_key(struct yaml_tree *tree)
{
    struct yaml_frame *frame = top(tree);
    frame->has_key = true;
    frame->discarded = true;
    return fault(tree, frame->place, "put the key in quotes if it holds { } [ ] or *",
                 "a key must be text, not a list or mapping");
}

/* --- values --- */

/* Reserves the place of the next value. */
static int place_next(struct yaml_tree *tree, struct yaml_place place)
{
    struct yaml_frame *frame = top(tree);
    if (!frame) {
        if (place.line > 0) {
            yaml_places_set_root(tree->places, place);
        }
        return YAML_ROOT_PLACE;
    }
    if (frame->has_key) {
        return frame->discarded || frame->merging
                   ? YAML_NO_PLACE
                   : yaml_places_add(tree->places, frame->place, frame->key, frame->key_place);
    }
    if (place.line == 0) {
        place = yaml_places_get(tree->places, frame->place);
    }
    return yaml_places_add(tree->places, frame->place, NULL, place);
}

/* Takes `value`, which may be NULL when out of memory. */
static int attach(struct yaml_tree *tree, json_t *value)
{
    struct yaml_frame *frame = top(tree);
    if (!value) {
        return MUSTER_ENOMEM;
    }
    if (!frame) {
        tree->root = value;
        return 0;
    }
    if (json_is_array(frame->value)) {
        return json_array_append_new(frame->value, value) == 0 ? 0 : MUSTER_ENOMEM;
    }
    int r = 0;
    if (frame->discarded) {
        r = json_array_append_new(tree->discarded, value);
    } else if (frame->merging) {
        json_decref(frame->merge);
        frame->merge = value;
        frame->merge_place = frame->key_place;
    } else {
        r = json_object_set_new(frame->value, frame->key, value);
    }
    free(muster_take(frame->key));
    frame->has_key = frame->discarded = frame->merging = false;
    return r == 0 ? 0 : MUSTER_ENOMEM;
}

static int keep_anchor(struct yaml_tree *tree, const char *anchor, json_t *value)
{
    return !anchor || json_object_set(tree->anchors, anchor, value) == 0 ? 0 : MUSTER_ENOMEM;
}

int yaml_tree_open(struct yaml_tree *tree, bool mapping, const char *anchor,
                   struct yaml_place place, struct muster_err *err)
{
    tree->fault = NULL;
    int r = yaml_budget_spend(tree->budget, err);
    if (r != 0 || (r = yaml_budget_check_depth(tree->budget, tree->depth + 1, err)) != 0) {
        return r;
    }
    bool as_key = awaits_key(tree);
    if (as_key) {
        refuse_key(tree);
    }
    struct yaml_frame frame = {.place = place_next(tree, place)};
    frame.value = mapping ? json_object() : json_array();
    r = attach(tree, frame.value);
    if (as_key) { /* the value of this key is left out, too */
        top(tree)->has_key = top(tree)->discarded = true;
    }
    if (r == 0 && anchor && !(frame.anchor = strdup(anchor))) {
        r = MUSTER_ENOMEM;
    }
    if (r == 0) {
        tree->frames[tree->depth++] = frame;
    }
    return r;
}

/* Copies keys of a merged mapping, except those that the mapping itself has (YAML 1.1 merge). */
static int merge_one(struct yaml_tree *tree, json_t *into, json_t *from, struct muster_err *err)
{
    const char *key;
    json_t *value;
    json_object_foreach (from, key, value) {
        if (json_object_get(into, key)) {
            continue;
        }
        json_t *copy = NULL;
        int r = yaml_copy(tree->budget, value, &copy, err);
        if (r != 0) {
            return r;
        }
        if (json_object_set_new(into, key, copy) != 0) {
            return MUSTER_ENOMEM;
        }
    }
    return 0;
}

static int merge(struct yaml_tree *tree, struct yaml_frame *frame, struct muster_err *err)
{
    if (json_is_object(frame->merge)) {
        return merge_one(tree, frame->value, frame->merge, err);
    }
    const char *alias = json_string_value(frame->merge);
    if (alias && *alias == '*') {
        return 0; /* an alias without an anchor, which was reported before */
    }
    size_t index;
    json_t *from;
    bool mappings = json_is_array(frame->merge);
    json_array_foreach (frame->merge, index, from) {
        mappings = mappings && json_is_object(from);
    }
    if (!mappings) {
        fault(tree, frame->place, "write <<: *anchor",
              "<< must be followed by a mapping or a list of mappings");
        tree->fault_at = frame->merge_place;
        return 0;
    }
    json_array_foreach (frame->merge, index, from) {
        int r = merge_one(tree, frame->value, from, err);
        if (r != 0) {
            return r;
        }
    }
    return 0;
}

int yaml_tree_close(struct yaml_tree *tree, struct muster_err *err)
{
    tree->fault = NULL;
    assert(tree->depth > 0);
    struct yaml_frame frame = tree->frames[--tree->depth];
    int r = frame.merge ? merge(tree, &frame, err) : 0;
    r = r < 0 ? r : keep_anchor(tree, frame.anchor, frame.value);
    frame_done(&frame);
    return r;
}

static json_t *scalar_value(struct yaml_tree *tree, const struct yaml_scalar *scalar, int place)
{
    static const char core[] = "tag:yaml.org,2002:";
    const char *tag = scalar->tag;
    if (!tag && scalar->quoting == YAML_PLAIN) {
        return yaml_resolve(scalar->text, scalar->length);
    }
    if (tag && strncmp(tag, core, sizeof core - 1) == 0) {
        const char *kind = tag + sizeof core - 1;
        if (strcmp(kind, "int") == 0 || strcmp(kind, "bool") == 0 || strcmp(kind, "float") == 0 ||
            strcmp(kind, "null") == 0) {
            return yaml_resolve(scalar->text, scalar->length);
        }
        tag = strcmp(kind, "str") == 0 ? NULL : tag;
    }
    if (tag) {
        bool short_form = strncmp(tag, core, sizeof core - 1) == 0;
        fault(tree, place, "remove the tag", "unknown tag %s%.40s; the value is read as text",
              short_form ? "!!" : "", short_form ? tag + sizeof core - 1 : tag);
    }
    return json_stringn(scalar->text, scalar->length);
}

int yaml_tree_scalar(struct yaml_tree *tree, const struct yaml_scalar *scalar, const char *anchor,
                     struct yaml_place place, struct muster_err *err)
{
    tree->fault = NULL;
    int r = yaml_budget_spend(tree->budget, err);
    if (r != 0) {
        return r;
    }
    if (awaits_key(tree)) {
        muster_auto(doc) json_t *text = json_stringn(scalar->text, scalar->length);
        r = text ? keep_anchor(tree, anchor, text) : MUSTER_ENOMEM;
        return r == 0 ? take_key(tree, scalar, place) : r;
    }
    int where = place_next(tree, place);
    json_t *value = scalar_value(tree, scalar, where);
    if (json_is_string(value) && strlen(json_string_value(value)) != json_string_length(value)) {
        json_decref(value);
        value = json_null();
        fault(tree, where, NULL, "text must not hold a NUL byte");
    }
    r = value ? keep_anchor(tree, anchor, value) : MUSTER_ENOMEM;
    return attach(tree, value) == 0 ? r : MUSTER_ENOMEM;
}

/* --- aliases --- */

int yaml_tree_alias(struct yaml_tree *tree, const char *name, struct yaml_place place,
                    struct muster_err *err)
{
    tree->fault = NULL;
    const json_t *value = json_object_get(tree->anchors, name);
    if (awaits_key(tree)) {
        if (!json_is_string(value)) {
            return refuse_key(tree);
        }
        struct yaml_scalar key = {json_string_value(value), json_string_length(value), YAML_QUOTED,
                                  NULL};
        return take_key(tree, &key, place);
    }
    int where = place_next(tree, place);
    json_t *copy = NULL;
    if (!value) {
        /* Without this text the field would be reported as missing. */
        muster_auto(doc) json_t *text = json_sprintf("*%s", name);
        fault(tree, where, "write the value itself, or define the anchor first",
              "the alias *%.40s has no anchor &%.40s above it", name, name);
        return attach(tree, text ? json_incref(text) : NULL);
    }
    int r = yaml_budget_check_depth(tree->budget, tree->depth + yaml_height(value), err);
    r = r < 0 ? r : yaml_copy(tree->budget, value, &copy, err);
    return r == 0 ? attach(tree, copy) : r;
}
