/* See file.h. */
#include "job/file.h"

#include "base/cleanup.h"
#include "job/context.h"
#include "job/indent.h"
#include "job/layout.h"
#include "job/references.h"

#include <limits.h>
#include <stdlib.h>

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

static void check_document(const struct yaml_stream *stream, size_t i, bool partial,
                           struct job_problems *problems)
{
    struct check c;
    check_init(&c, &stream->documents[i], problems);
    c.partial = partial;
    check_object(&c, stream->documents[i].doc);
    check_done(&c);
}

static int read_objects(struct job_file *file, size_t misplaced, struct job_problems *problems)
{
    const struct yaml_stream *stream = &file->stream;
    bool broken = stream->fault_count > 0 && stream->faults[stream->fault_count - 1].fatal;
    struct job_problems before = {.list = problems->list, .count = misplaced};
    file->objects = calloc(stream->document_count + 1, sizeof(json_t *));
    muster_auto(free) const struct yaml_document **sources =
        calloc(stream->document_count + 1, sizeof *sources);
    if (!file->objects || !sources) {
        return MUSTER_ENOMEM;
    }
    for (size_t i = 0; i < stream->document_count; i++) {
        const struct yaml_document *document = &stream->documents[i];
        if (!document->doc) {
            continue;
        }
        before.list = problems->list;
        if (!said(&before, yaml_place_of(document, "").line, last_line(stream, i))) {
            int rc = job_upgrade(document->doc, document, problems);
            if (rc != 0) {
                return rc;
            }
            check_document(stream, i, broken && i + 1 == stream->document_count, problems);
        }
        sources[file->object_count] = document;
        file->objects[file->object_count++] = document->doc;
    }
    if (problems->errors == 0 && problems->advice) {
        job_references_check(file->objects, sources, file->object_count, problems);
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
    yaml_done(&file->stream);
    *file = (struct job_file){0};
}
