/* See types.h. */
#include "api/protobuf/types.h"

#include "api/protobuf/kinds.h"
#include "base/base64.h"
#include "base/doc.h"
#include "base/quantity.h"
#include "base/time/timestamp.h"
#include "base/yaml/yaml.h"

#include <string.h>

enum { PATH_BYTES_MAX = 1024 };

/* The place in the object, and what is wrong at this place. */
struct walk {
    struct buf path;
    const char *must; /* "a whole number"; NULL: nothing is wrong yet */
    const json_t *value;
};

static bool walk_fields(struct walk *w, const json_t *object, const struct protobuf_field *fields);

/* ---- values ---- */

static bool is_base64(const json_t *value)
{
    return json_is_string(value) && base64_is(json_string_value(value));
}

static bool is_time(const json_t *value)
{
    return json_is_string(value) && timestamp_read(json_string_value(value)) != TIMESTAMP_NONE;
}

static bool is_quantity(const json_t *value)
{
    double amount;
    return json_is_number(value) ||
           (json_is_string(value) && quantity_read(json_string_value(value), &amount));
}

static bool is_text(const json_t *value)
{
    return json_is_string(value);
}

static bool is_whole(const json_t *value)
{
    return json_is_integer(value);
}

static bool is_flag(const json_t *value)
{
    return json_is_boolean(value);
}

static bool is_number_or_text(const json_t *value)
{
    return json_is_integer(value) || json_is_string(value);
}

static bool is_list(const json_t *value)
{
    return json_is_array(value);
}

static bool is_mapping(const json_t *value)
{
    return json_is_object(value);
}

static const struct type {
    bool (*is)(const json_t *value); /* NULL: anything */
    const char *must;
    enum { ALONE, LIST, MAP } holds;       /* values of: */
    bool (*each_is)(const json_t *member); /* NULL: the values are messages, or there are none */
    const char *each_must;
} types[] = {
    [PROTOBUF_TEXT] = {is_text, "text", ALONE, NULL, NULL},
    [PROTOBUF_BOOL] = {is_flag, "true or false", ALONE, NULL, NULL},
    [PROTOBUF_NUMBER] = {is_whole, "a whole number", ALONE, NULL, NULL},
    [PROTOBUF_BYTES] = {is_base64, "base64", ALONE, NULL, NULL},
    [PROTOBUF_TIME] = {is_time, "a time such as 2026-01-02T03:04:05Z", ALONE, NULL, NULL},
    [PROTOBUF_MICRO_TIME] = {is_time, "a time such as 2026-01-02T03:04:05.000000Z", ALONE, NULL,
                             NULL},
    [PROTOBUF_QUANTITY] = {is_quantity, "a quantity such as 500m or 1Gi", ALONE, NULL, NULL},
    [PROTOBUF_INT_OR_TEXT] = {is_number_or_text, "a whole number or text", ALONE, NULL, NULL},
    [PROTOBUF_RAW] = {NULL, NULL, ALONE, NULL, NULL},
    [PROTOBUF_MESSAGE] = {is_mapping, "a mapping", ALONE, NULL, NULL},
    [PROTOBUF_INLINE] = {NULL, NULL, ALONE, NULL, NULL},
    [PROTOBUF_LIST] = {is_list, "a list", LIST, is_mapping, "a mapping"},
    [PROTOBUF_TEXT_LIST] = {is_list, "a list", LIST, is_text, "text"},
    [PROTOBUF_NUMBER_LIST] = {is_list, "a list", LIST, is_whole, "a whole number"},
    [PROTOBUF_TEXT_MAP] = {is_mapping, "a mapping", MAP, is_text, "text"},
    [PROTOBUF_BYTES_MAP] = {is_mapping, "a mapping", MAP, is_base64, "base64"},
    [PROTOBUF_QUANTITY_MAP] = {is_mapping, "a mapping", MAP, is_quantity,
                               "a quantity such as 500m or 1Gi"},
};

/* ---- walking ---- */

static bool check(struct walk *w, const json_t *value, bool (*is)(const json_t *), const char *must)
{
    if (!is || json_is_null(value) || is(value)) {
        return true;
    }
    w->must = must;
    w->value = value;
    return false;
}

static bool walk_list(struct walk *w, const json_t *list, const struct type *type,
                      const struct protobuf_field *message)
{
    size_t i;
    json_t *member;
    json_array_foreach (list, i, member) {
        size_t mark = w->path.used;
        yaml_path_index(&w->path, i);
        if (!check(w, member, type->each_is, type->each_must) ||
            (message && !walk_fields(w, member, message))) {
            return false;
        }
        buf_truncate(&w->path, mark);
    }
    return true;
}

static bool walk_map(struct walk *w, const json_t *map, const struct type *type)
{
    const char *key;
    json_t *member;
    json_object_foreach ((json_t *)map, key, member) {
        size_t mark = w->path.used;
        yaml_path_key(&w->path, key);
        if (!check(w, member, type->each_is, type->each_must)) {
            return false;
        }
        buf_truncate(&w->path, mark);
    }
    return true;
}

static bool walk_field(struct walk *w, const json_t *value, const struct protobuf_field *field)
{
    const struct type *type = &types[field->type];
    if (!check(w, value, type->is, type->must)) {
        return false;
    }
    if (type->holds == LIST) {
        return walk_list(w, value, type, field->message);
    }
    return type->holds == MAP ? walk_map(w, value, type)
                              : !field->message || walk_fields(w, value, field->message);
}

static bool walk_fields(struct walk *w, const json_t *object, const struct protobuf_field *fields)
{
    for (const struct protobuf_field *field = fields; field->number != 0; field++) {
        const json_t *value = field->type == PROTOBUF_INLINE
                                  ? object
                                  : json_object_get((json_t *)object, field->name);
        size_t mark = w->path.used;
        if (field->type != PROTOBUF_INLINE) {
            yaml_path_key(&w->path, field->name);
        }
        if (value && !walk_field(w, value, field)) {
            return false;
        }
        buf_truncate(&w->path, mark);
    }
    return true;
}

bool types_fit(const json_t *object, const char *api_version, const char *kind,
               struct buf *ret_fault)
{
    const struct protobuf_field *fields = protobuf_find_kind(api_version, kind);
    struct walk w = {0};
    buf_init(&w.path, PATH_BYTES_MAX);
    bool fits = !fields || walk_fields(&w, object, fields);
    if (!fits) {
        buf_format(ret_fault, "%s: must be %s", buf_str(&w.path), w.must);
        if (!json_is_string(w.value)) {
            buf_format(ret_fault, ", not %s", doc_type_name(w.value));
        } else if (strcmp(w.must, "base64") != 0) { /* a Secret's values are not repeated */
            buf_format(ret_fault, ", not \"%.60s\"", json_string_value(w.value));
        }
    }
    buf_done(&w.path);
    return fits;
}
