/* See shape.h. */
#include "api/shape/shape.h"

#include "base/cleanup.h"
#include "base/doc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOTE_BYTES_MAX = 1024, WORD_BYTES_MAX = 128 };

const struct shape shape_stored = {0};

static void check_event(const json_t *stored, struct job_problems *problems);

const struct shape shape_event = {
    .shown_version = "events.k8s.io/v1",
    .stored_version = "v1",
    .fields = {{"regarding", "involvedObject"},
               {"note", "message"},
               {"reportingController", "reportingComponent"},
               {"deprecatedSource", "source"},
               {"deprecatedFirstTimestamp", "firstTimestamp"},
               {"deprecatedLastTimestamp", "lastTimestamp"},
               {"deprecatedCount", "count"}},
    .check = check_event,
};

/* ---- from the stored to the shown form, and back ---- */

/* Moves the value of `from` to `to`, which had no value or a value without meaning here. */
static int rename_field(json_t *object, const char *from, const char *to)
{
    json_t *value = json_object_get(object, from);
    if (!value) {
        (void)json_object_del(object, to);
        return 0;
    }
    if (json_object_set(object, to, value) != 0) {
        return MUSTER_ENOMEM;
    }
    return json_object_del(object, from);
}

json_t *shape_show(const struct shape *shape, json_t *object)
{
    if (!shape->stored_version) {
        return json_incref(object);
    }
    muster_auto(doc) json_t *shown = json_copy(object);
    int r = shown ? doc_set_text(shown, "apiVersion", shape->shown_version) : MUSTER_ENOMEM;
    for (const struct shape_field *f = shape->fields; f->shown && r == 0; f++) {
        r = rename_field(shown, f->stored, f->shown);
    }
    return r == 0 ? muster_take(shown) : NULL;
}

json_t *shape_show_all(const struct shape *shape, json_t *items)
{
    muster_auto(doc) json_t *all = json_array();
    size_t i;
    json_t *item;
    if (!shape->stored_version) {
        return json_incref(items);
    }
    json_array_foreach (items, i, item) {
        json_t *shown = shape_show(shape, item);
        if (!shown || json_array_append_new(all, shown) != 0) {
            return NULL;
        }
    }
    return muster_take(all);
}

int shape_take(const struct shape *shape, json_t *object)
{
    int r = shape->stored_version ? doc_set_text(object, "apiVersion", shape->stored_version) : 0;
    for (const struct shape_field *f = shape->fields; f->shown && r == 0; f++) {
        r = rename_field(object, f->shown, f->stored);
    }
    return r;
}

/* "regarding.name" → "involvedObject.name" */
static int take_path(const struct shape *shape, char **path)
{
    size_t first = strcspn(*path, ".");
    for (const struct shape_field *f = shape->fields; f->shown; f++) {
        char *stored = NULL;
        if (strlen(f->shown) != first || strncmp(f->shown, *path, first) != 0) {
            continue;
        }
        if (asprintf(&stored, "%s%s", f->stored, *path + first) < 0) {
            return MUSTER_ENOMEM;
        }
        free(*path);
        *path = stored;
        return 0;
    }
    return 0;
}

int shape_take_paths(const struct shape *shape, struct selector *fields)
{
    int r = 0;
    for (size_t i = 0; i < fields->count && r == 0; i++) {
        r = take_path(shape, &fields->requirements[i].key);
    }
    return r;
}

/* ---- events ---- */

static void require_word(const json_t *event, const char *stored, const char *shown,
                         size_t bytes_max, struct job_problems *problems)
{
    size_t bytes = strlen(doc_text(event, stored, ""));
    if (bytes == 0) {
        job_problem_add(problems, JOB_ERROR, shown, NULL, "Required value");
        job_problem_reason(problems, "FieldValueRequired");
    } else if (bytes > bytes_max) {
        job_problem_add(problems, JOB_ERROR, shown, NULL, "can have at most %zu characters",
                        bytes_max);
    }
}

static void forbid(const json_t *event, const char *stored, const char *shown,
                   struct job_problems *problems)
{
    const json_t *value = doc_at(event, stored);
    bool says = (json_is_object(value) && json_object_size(value) > 0) ||
                (json_is_string(value) && *json_string_value(value)) ||
                (json_is_integer(value) && json_integer_value(value) != 0);
    if (says) {
        job_problem_add(problems, JOB_ERROR, shown, NULL, "needs to be unset");
    }
}

/* events.k8s.io/v1 does not accept a new event that uses the deprecated fields for times. */
static void check_event(const json_t *stored, struct job_problems *problems)
{
    static const char *const types[] = {"Normal", "Warning"};
    const char *type = doc_text(stored, "type", "");
    require_word(stored, "eventTime", "eventTime", WORD_BYTES_MAX, problems);
    require_word(stored, "reportingComponent", "reportingController", WORD_BYTES_MAX, problems);
    require_word(stored, "reportingInstance", "reportingInstance", WORD_BYTES_MAX, problems);
    require_word(stored, "action", "action", WORD_BYTES_MAX, problems);
    require_word(stored, "reason", "reason", WORD_BYTES_MAX, problems);
    if (strlen(doc_text(stored, "message", "")) > NOTE_BYTES_MAX) {
        job_problem_add(problems, JOB_ERROR, "note", NULL, "can have at most %d characters",
                        NOTE_BYTES_MAX);
    }
    if (strcmp(type, types[0]) != 0 && strcmp(type, types[1]) != 0) {
        job_problem_add(problems, JOB_ERROR, "type", NULL, "must be Normal or Warning");
    }
    forbid(stored, "source", "deprecatedSource", problems);
    forbid(stored, "firstTimestamp", "deprecatedFirstTimestamp", problems);
    forbid(stored, "lastTimestamp", "deprecatedLastTimestamp", problems);
    forbid(stored, "count", "deprecatedCount", problems);
}
