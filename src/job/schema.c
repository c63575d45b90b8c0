/* See schema.h. The words below are those of job.def and podspec.def. */
#include "job/schema.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

enum { DEPTH_MAX = 8, DISTANCE_MAX = 3 };

#define ANY .kind = SCHEMA_ANY
#define TEXT .kind = SCHEMA_TEXT
#define FORM(which) .kind = SCHEMA_TEXT, .form = SCHEMA_##which
#define WORDS(list) .kind = SCHEMA_TEXT, .form = SCHEMA_WORDS, .words = (list)
#define TEXTS .kind = SCHEMA_TEXTS
#define TEXT_MAP .kind = SCHEMA_TEXT_MAP
#define INTEGER(low, high) .kind = SCHEMA_INTEGER, .min = (low), .max = (high)
#define BOOLEAN .kind = SCHEMA_BOOLEAN
#define QUANTITY .kind = SCHEMA_QUANTITY
#define QUANTITY_MAP .kind = SCHEMA_QUANTITY_MAP
#define OBJECT(which) .kind = SCHEMA_OBJECT, .of = SCHEMA_##which
#define LIST(which) .kind = SCHEMA_LIST, .of = SCHEMA_##which
#define REQUIRED true
#define OPTIONAL false
#define FIELD(in, field, what, need, how, sentence)                                                \
    {.type = SCHEMA_##in,                                                                          \
     .name = #field,                                                                               \
     what,                                                                                         \
     .required = (need),                                                                           \
     .support = SCHEMA_##how,                                                                      \
     .says = (sentence)},
static const struct schema_field fields[] = {
#include "job/job.def"
#include "job/podspec.def"
};
enum { FIELD_COUNT = sizeof fields / sizeof fields[0] };

const struct schema_field *schema_fields(size_t *ret_count)
{
    *ret_count = FIELD_COUNT;
    return fields;
}

const struct schema_field *schema_find(enum schema_type type, const char *name)
{
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        if (fields[i].type == type && strcmp(fields[i].name, name) == 0) {
            return &fields[i];
        }
    }
    return NULL;
}

const char *schema_title(enum schema_type type)
{
    static const char *const titles[] = {
#define X(name, title) title,
        SCHEMA_TYPES
#undef X
    };
    return titles[type];
}

const struct schema_field *schema_nearest(enum schema_type type, const char *name)
{
    const struct schema_field *nearest = NULL;
    size_t best = DISTANCE_MAX + 1;
    size_t length = strlen(name);
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        if (fields[i].type != type) {
            continue;
        }
        size_t far = text_distance(name, fields[i].name);
        bool contained = length >= 4 && strcasestr(fields[i].name, name) != NULL;
        if (contained && far > DISTANCE_MAX) {
            far = DISTANCE_MAX; /* finds pytorchReplicaSpecs for replicaSpecs */
        }
        if (far < best && (contained || far * 2 < length)) {
            best = far;
            nearest = &fields[i];
        }
    }
    return nearest;
}

/* Searches depth-first to a fixed depth; the caller increases it, so that the shallowest place is
 * found. */
static bool find_at_depth(enum schema_type type, const char *name, int depth, char *path,
                          size_t path_bytes, size_t used)
{
    if (depth == 0) {
        path[used] = '\0';
        return schema_find(type, name) != NULL;
    }
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        const struct schema_field *field = &fields[i];
        bool object = field->kind == SCHEMA_OBJECT;
        if (field->type != type || (!object && field->kind != SCHEMA_LIST)) {
            continue;
        }
        int added = snprintf(path + used, path_bytes - used, "%s%s%s", used ? "." : "", field->name,
                             object ? "" : "[0]");
        if (added > 0 && (size_t)added < path_bytes - used &&
            find_at_depth(field->of, name, depth - 1, path, path_bytes, used + (size_t)added)) {
            return true;
        }
    }
    return false;
}

static bool known_anywhere(const char *name)
{
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        if (strcmp(fields[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

bool schema_find_below(enum schema_type type, const char *name, char *ret_path, size_t path_bytes)
{
    if (!known_anywhere(name)) {
        return false; /* true for most unknown names; the search below costs a millisecond */
    }
    for (int depth = 0; depth < DEPTH_MAX; depth++) {
        if (find_at_depth(type, name, depth, ret_path, path_bytes, 0)) {
            return true;
        }
    }
    return false;
}
