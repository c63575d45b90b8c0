/* Compares an object with the schema (see context.h). */
#include "job/check/context.h"
#include "job/check/hint.h"
#include "job/paste.h"
#include "job/text.h"

#include "base/doc.h"
#include "base/quantity.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { HINT_BYTES_MAX = 512 };

static void walk_field(struct check *c, const json_t *value, const struct schema_field *field);

/* --- unknown fields --- */

/* Searches for the exact name below this object, then in the objects around it, then for a similar
 * name in this object. */
static bool guess(struct check *c, enum schema_type type, const char *name, char *ret,
                  size_t ret_bytes)
{
    const struct schema_field *near = schema_nearest(type, name);
    char below[HINT_BYTES_MAX / 2];
    if (schema_find_below(type, name, below, sizeof below)) {
        snprintf(ret, ret_bytes, "did you mean %s%s%s.%s?", buf_str(&c->path),
                 c->path.used ? "." : "", below, name);
        return true;
    }
    for (int i = c->depth - 1; i >= 0; i--) {
        if (schema_find(c->around[i].type, name)) {
            int up = (int)c->around[i].path_used;
            snprintf(ret, ret_bytes, "did you mean %.*s%s%s?", up, buf_str(&c->path), up ? "." : "",
                     name);
            return true;
        }
    }
    if (near) {
        snprintf(ret, ret_bytes, "did you mean %s?", near->name);
    }
    return near != NULL;
}

/* Reports an unknown field. An API server drops such a field: the job runs, but not as written. It
 * refuses an unknown replica type. */
static void unknown(struct check *c, enum schema_type type, const char *name)
{
    char hint[HINT_BYTES_MAX];
    bool listed = c->problems->count < c->problems->max; /* else nobody would read the guess */
    bool guessed = listed && guess(c, type, name, hint, sizeof hint);
    size_t place = c->problems->count;
    if (type == SCHEMA_replica_specs) {
        check_say(c, JOB_ERROR, name, guessed ? hint : "use Master and Worker",
                  "unknown replica type");
    } else if (c->depth == 0) {
        check_say(c, JOB_WARNING, name, guessed ? hint : NULL,
                  "%.60s is at top level, where %s has no such field; it is ignored", name,
                  schema_title(type));
    } else {
        check_say(c, JOB_WARNING, name, guessed ? hint : NULL,
                  "%s has no such field; it is ignored", schema_title(type));
    }
    if (c->problems->count > place) {
        c->problems->list[place].strict = type != SCHEMA_replica_specs;
    }
}

/* --- values --- */

static void wrong_type(struct check *c, const json_t *value, const char *must, const char *hint)
{
    if (json_is_null(value)) {
        check_say(c, JOB_ERROR, NULL, "give it a value, or \"\"", "must be %s, but has no value",
                  must);
    } else if (json_is_string(value)) {
        const char *template = paste_template_hint(json_string_value(value));
        check_say(c, JOB_ERROR, NULL, template ? template : hint, "must be %s, not \"%.60s\"", must,
                  json_string_value(value));
    } else {
        check_say(c, JOB_ERROR, NULL, hint, "must be %s, not %s", must, doc_type_name(value));
    }
    check_reason(c, "FieldValueTypeInvalid");
}

static void say_fault(struct check *c, enum schema_form form, const char *text, const char *fault)
{
    char mended[64] = "";
    char hint[HINT_BYTES_MAX];
    const char *template = paste_template_hint(text);
    if (form == SCHEMA_LABEL || form == SCHEMA_PORT_NAME) {
        job_text_mend(form, text, sizeof mended, mended, sizeof mended);
    }
    snprintf(hint, sizeof hint, "did you mean \"%s\"?", mended);
    check_say(c, JOB_ERROR, NULL,
              template  ? template
              : *mended ? hint
                        : NULL,
              "\"%.60s\" %s", text, fault);
    if (!*text) {
        check_reason(c, "FieldValueRequired");
    }
}

static void walk_text(struct check *c, const json_t *value, const struct schema_field *field)
{
    const char *text = json_string_value(value);
    if (!text) {
        const char *scalar =
            json_is_object(value) || json_is_array(value) ? NULL : "put it in quotes";
        wrong_type(c, value, "text", scalar);
        return;
    }
    if (field->form == SCHEMA_WORDS) {
        check_choice(c, text, field->words);
        return;
    }
    const char *fault = job_text_fault(field->form, text);
    if (fault) {
        say_fault(c, field->form, text, fault);
    } else if (field->form == SCHEMA_NOT_EMPTY && paste_template_hint(text)) {
        check_say(c, JOB_WARNING, NULL, paste_template_hint(text),
                  "\"%.60s\" is not a valid image name", text);
    }
}

static void walk_integer(struct check *c, const json_t *value, const struct schema_field *field)
{
    if (json_is_real(value)) {
        check_say(c, JOB_ERROR, NULL, NULL, "%g must be a whole number", json_real_value(value));
        return;
    }
    if (!json_is_integer(value)) {
        char hint[HINT_BYTES_MAX];
        const char *text = json_string_value(value);
        bool known = text && hint_integer(field->name, text, hint, sizeof hint);
        wrong_type(c, value, "a whole number", known ? hint : NULL);
        return;
    }
    int64_t number = json_integer_value(value);
    if (number >= field->min && number <= field->max) {
        return;
    }
    if (field->max >= INT32_MAX) {
        check_say(c, JOB_ERROR, NULL, number < field->min ? NULL : "it is too large",
                  "%lld must be %lld or more", (long long)number, (long long)field->min);
    } else {
        check_say(c, JOB_ERROR, NULL, NULL, "%lld must be %lld to %lld", (long long)number,
                  (long long)field->min, (long long)field->max);
    }
}

static void walk_quantity(struct check *c, const json_t *value)
{
    static const char form[] = "a quantity such as 2, 500m or 4Gi";
    double number = json_number_value(value);
    if (json_is_null(value)) {
        check_say(c, JOB_WARNING, NULL, "give it a value, or remove the line",
                  "has no value; it is ignored");
    } else if (json_is_string(value)) {
        if (!quantity_read(json_string_value(value), &number)) {
            char hint[HINT_BYTES_MAX];
            bool known = hint_quantity(json_string_value(value), hint, sizeof hint);
            wrong_type(c, value, form, known ? hint : NULL);
            return;
        }
    } else if (!json_is_number(value)) {
        wrong_type(c, value, form, NULL);
    }
    if (number < 0) {
        check_say(c, JOB_ERROR, NULL, NULL, "must not be negative");
    }
}

static void walk_texts(struct check *c, const json_t *list)
{
    size_t index;
    json_t *value;
    json_array_foreach (list, index, value) {
        if (!json_is_string(value)) {
            size_t mark = check_enter_index(c, index);
            wrong_type(c, value, "text", "put it in quotes");
            check_leave(c, mark);
        }
    }
}

static void walk_map(struct check *c, const json_t *map, enum schema_kind kind)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)map, key, value) {
        size_t mark = check_enter(c, key);
        if (kind == SCHEMA_QUANTITY_MAP) {
            walk_quantity(c, value);
        } else if (!json_is_string(value)) {
            wrong_type(c, value, "text", json_is_object(value) ? NULL : "put it in quotes");
        }
        check_leave(c, mark);
    }
}

static void walk_list(struct check *c, const json_t *list, const struct schema_field *field)
{
    size_t index;
    json_t *value;
    json_array_foreach (list, index, value) {
        size_t mark = check_enter_index(c, index);
        if (json_is_object(value)) {
            check_walk(c, value, field->of);
        } else {
            wrong_type(c, value, "a mapping", NULL);
        }
        check_leave(c, mark);
    }
}

/* Reports a value that should be a list. */
static void say_no_list(struct check *c, const json_t *value, const struct schema_field *field)
{
    char hint[HINT_BYTES_MAX] = "start each item with '- '";
    if (field->of == SCHEMA_env && json_is_object(value)) {
        snprintf(hint, sizeof hint, "write each as - {name: NAME, value: \"VALUE\"}");
    } else if (field->kind == SCHEMA_TEXTS && json_is_string(value)) {
        (void)hint_words(json_string_value(value), hint, sizeof hint);
    }
    wrong_type(c, value, "a list", hint);
}

static void walk_container(struct check *c, const json_t *value, const struct schema_field *field)
{
    bool list = field->kind == SCHEMA_LIST || field->kind == SCHEMA_TEXTS;
    if (list && !json_is_array(value)) {
        say_no_list(c, value, field);
    } else if (!list && !json_is_object(value)) {
        wrong_type(c, value, "a mapping", NULL);
    } else if (field->kind == SCHEMA_OBJECT) {
        check_walk(c, value, field->of);
    } else if (field->kind == SCHEMA_LIST) {
        walk_list(c, value, field);
    } else if (field->kind == SCHEMA_TEXTS) {
        walk_texts(c, value);
    } else {
        walk_map(c, value, field->kind);
    }
}

static void walk_boolean(struct check *c, const json_t *value)
{
    char text[HINT_BYTES_MAX / 2], hint[HINT_BYTES_MAX];
    if (json_is_boolean(value)) {
        return;
    }
    snprintf(text, sizeof text, "%.20s", json_is_string(value) ? json_string_value(value) : "");
    if (json_is_integer(value)) {
        snprintf(text, sizeof text, "%lld", (long long)json_integer_value(value));
    }
    bool known = *text && hint_boolean(text, hint, sizeof hint);
    wrong_type(c, value, "true or false", known ? hint : NULL);
}

static void walk_field(struct check *c, const json_t *value, const struct schema_field *field)
{
    switch (field->kind) {
    case SCHEMA_ANY: break;
    case SCHEMA_TEXT: walk_text(c, value, field); break;
    case SCHEMA_INTEGER: walk_integer(c, value, field); break;
    case SCHEMA_QUANTITY: walk_quantity(c, value); break;
    case SCHEMA_BOOLEAN: walk_boolean(c, value); break;
    case SCHEMA_TEXTS:
    case SCHEMA_TEXT_MAP:
    case SCHEMA_QUANTITY_MAP:
    case SCHEMA_OBJECT:
    case SCHEMA_LIST: walk_container(c, value, field); break;
    }
}

/* --- objects --- */

/* Whether the value has no effect that could be missing: a switch that is off, an empty list or
 * mapping. */
static bool asks_for_nothing(const json_t *value)
{
    return json_is_false(value) || (json_is_array(value) && json_array_size(value) == 0) ||
           (json_is_object(value) && json_object_size(value) == 0);
}

static void say_support(struct check *c, const json_t *value, const struct schema_field *field)
{
    if (c->problems->cluster) {
        return;
    }
    if (field->support == SCHEMA_REJECTED) {
        check_say(c, JOB_ERROR, NULL, NULL, "cannot be run on this machine: %s", field->says);
    } else if (field->support == SCHEMA_WARNED && !asks_for_nothing(value)) {
        check_say(c, JOB_WARNING, NULL, NULL, "has no effect on this machine: %s", field->says);
    } else if (field->support == SCHEMA_SUPPORTED && c->problems->verbose) {
        check_say(c, JOB_INFO, NULL, NULL, "%s", field->says);
    }
}

/* Reports a null. An API server drops nulls, so a required field is then missing; this is reported
 * only here. */
static void say_null(struct check *c, const struct schema_field *field)
{
    if (field->kind == SCHEMA_ANY) {
        return; /* kubectl itself writes "creationTimestamp: null" */
    }
    if (field->required || field->of == SCHEMA_replica_spec) {
        check_say(c, JOB_ERROR, NULL, "give it a value, or indent the lines that belong to it",
                  "has no value");
    } else {
        check_say(c, JOB_WARNING, NULL, "give it a value, or remove the line",
                  "has no value; it is ignored");
    }
}

static void say_missing(struct check *c, const json_t *object, enum schema_type type)
{
    size_t count;
    const struct schema_field *fields = schema_fields(&count);
    for (size_t i = 0; i < count; i++) {
        if (fields[i].type == type && fields[i].required &&
            !json_object_get(object, fields[i].name)) {
            check_required(c, fields[i].name, NULL, "is missing");
        }
    }
}

void check_walk(struct check *c, const json_t *object, enum schema_type type)
{
    if (c->depth == CHECK_DEPTH_MAX) {
        return; /* the schema is not that deep */
    }
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)object, key, value) {
        const struct schema_field *field = schema_find(type, key);
        if (!field) {
            unknown(c, type, key);
            continue;
        }
        size_t mark = check_enter(c, key);
        c->around[c->depth].type = type;
        c->around[c->depth++].path_used = mark;
        if (json_is_null(value)) {
            say_null(c, field);
        } else {
            say_support(c, value, field);
            walk_field(c, value, field);
        }
        c->depth--;
        check_leave(c, mark);
    }
    if (!c->partial) {
        say_missing(c, object, type);
    }
}
