/* See file.h. */
#include "job/file.h"

#include "base/doc.h"
#include "job/context.h"
#include "job/indent.h"
#include "job/layout.h"
#include "job/references.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LISTS_MAX = 100 }; /* deeper than yaml_limits_default lets lists be nested */

static bool has_null(const json_t *value)
{
    size_t index;
    const char *key;
    json_t *child;
    bool found = json_is_null(value);
    json_array_foreach (value, index, child) {
        found = found || has_null(child);
    }
    json_object_foreach ((json_t *)value, key, child) {
        found = found || has_null(child);
    }
    return found;
}

/* Misplaced fields leave a syntax error or a key without a value; other files are not looked at. */
static bool may_be_misplaced(const struct yaml_stream *stream)
{
    bool may = false;
    for (size_t i = 0; i < stream->fault_count; i++) {
        may = may || stream->faults[i].fatal;
    }
    for (size_t i = 0; i < stream->document_count; i++) {
        may = may || has_null(stream->documents[i].doc);
    }
    return may;
}

/* Is there a problem in these lines already? */
static bool said(const struct job_problems *problems, int first_line, int last_line)
{
    for (size_t i = 0; i < problems->count; i++) {
        int line = problems->list[i].line;
        if (first_line <= line && line <= last_line) {
            return true;
        }
    }
    return false;
}

/* A syntax error that the indentation explains is not said again in YAML's words. */
static void add_faults(const struct yaml_stream *stream, struct job_problems *problems)
{
    for (size_t i = 0; i < stream->fault_count; i++) {
        const struct yaml_fault *fault = &stream->faults[i];
        if (!fault->fatal || !said(problems, fault->place.line, fault->place.line)) {
            job_problem_place(problems, JOB_ERROR, fault->place, fault->path, fault->hint, "%s",
                              fault->message);
        }
    }
}

/* The last line before the next document. */
static int last_line(const struct yaml_stream *stream, size_t document)
{
    if (document + 1 == stream->document_count) {
        return INT_MAX;
    }
    return yaml_place_of(&stream->documents[document + 1], "").line - 1;
}

/* ---- The objects of the documents ---- */

struct reader {
    struct job_file *file;
    struct job_problems *problems;
    size_t room;
};

static int add_object(struct reader *r, const struct yaml_document *source)
{
    struct job_file *file = r->file;
    if (file->object_count == r->room) {
        size_t room = r->room ? r->room * 2 : 16;
        json_t **objects = reallocarray(file->objects, room, sizeof(json_t *));
        file->objects = objects ? objects : file->objects;
        struct yaml_document *sources = reallocarray(file->sources, room, sizeof *sources);
        file->sources = sources ? sources : file->sources;
        if (!objects || !sources) {
            return MUSTER_ENOMEM;
        }
        r->room = room;
    }
    file->sources[file->object_count] = *source;
    file->objects[file->object_count++] = source->doc;
    return 0;
}

/* As kubectl prints several objects: kind List, or PyTorchJobList. */
static bool is_list(const json_t *object)
{
    const char *kind = doc_text(object, "kind", "");
    size_t length = strlen(kind);
    return length >= 4 && strcmp(kind + length - 4, "List") == 0;
}

static void check_list(struct reader *r, const struct yaml_document *source)
{
    if (!json_is_array(json_object_get(source->doc, "items"))) {
        job_problem_place(r->problems, JOB_ERROR, yaml_place_of(source, "items"), "items", NULL,
                          "a %s has a list of objects here", doc_text(source->doc, "kind", ""));
    }
}

static int read_object(struct reader *r, const struct yaml_document *source, bool partial,
                       int depth)
{
    assert(depth > 0); /* yaml_limits_default.depth_max */
    if (!is_list(source->doc)) {
        int rc = job_upgrade(source->doc, source, r->problems);
        struct check c;
        check_init(&c, source, r->problems);
        c.partial = partial;
        check_object(&c, source->doc);
        check_done(&c);
        return rc < 0 ? rc : add_object(r, source);
    }
    json_t *items = json_object_get(source->doc, "items");
    int rc = 0;
    check_list(r, source);
    size_t i;
    json_t *item;
    json_array_foreach (items, i, item) {
        char path[32];
        (void)snprintf(path, sizeof path, "items[%zu]", i);
        const struct yaml_document part = yaml_part(source, item, path);
        bool last = i + 1 == json_array_size(items);
        rc = rc < 0 ? rc : read_object(r, &part, partial && last, depth - 1);
    }
    return rc;
}

static int read_objects(struct job_file *file, size_t misplaced, struct job_problems *problems)
{
    const struct yaml_stream *stream = &file->stream;
    bool broken = stream->fault_count > 0 && stream->faults[stream->fault_count - 1].fatal;
    struct job_problems before = {.list = problems->list, .count = misplaced};
    struct reader reader = {.file = file, .problems = problems};
    for (size_t i = 0; i < stream->document_count; i++) {
        const struct yaml_document *document = &stream->documents[i];
        before.list = problems->list;
        if (!document->doc) {
            continue;
        }
        bool explained = said(&before, yaml_place_of(document, "").line, last_line(stream, i));
        bool partial = broken && i + 1 == stream->document_count;
        int rc = explained ? add_object(&reader, document)
                           : read_object(&reader, document, partial, LISTS_MAX);
        if (rc < 0) {
            return rc;
        }
    }
    job_references_unique(file->objects, file->sources, file->object_count, problems);
    if (problems->errors == 0 && problems->advice) {
        job_references_check(file->objects, file->sources, file->object_count, problems);
    }
    return 0;
}

int job_file_read(const char *text, size_t bytes, struct job_file *ret,
                  struct job_problems *problems, struct muster_err *err)
{
    struct job_file file = {0};
    int rc = yaml_load(text, bytes, &yaml_limits_default, &file.stream, err);
    if (rc != 0) {
        return rc;
    }
    if (may_be_misplaced(&file.stream)) {
        job_indent_check(text, bytes, problems);
    }
    size_t misplaced = problems->count;
    add_faults(&file.stream, problems);
    rc = read_objects(&file, misplaced, problems);
    if (rc != 0) {
        job_file_done(&file);
        return muster_fail(err, rc, "out of memory");
    }
    if (file.object_count == 0 && problems->errors == 0) {
        job_problem_add(problems, JOB_ERROR, NULL, NULL, "there is nothing in this file");
    }
    *ret = file;
    return 0;
}

void job_file_done(struct job_file *file)
{
    free(file->objects); /* what they point to belongs to the stream */
    free(file->sources);
    yaml_done(&file->stream);
    *file = (struct job_file){0};
}
