/* See file.h. */
#include "job/file/file.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/text.h"
#include "job/check/context.h"
#include "job/check/references.h"
#include "job/file/indent.h"
#include "job/file/layout.h"
#include "job/paste.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LISTS_MAX = 100 }; /* more than the depth that yaml_limits_default allows */

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

/* Misplaced fields leave a syntax error or a key without a value; other files are not searched for
 * them. */
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

/* Whether there already is a problem in these lines. */
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

/* Adds the faults of YAML, except a syntax error that is already explained by the indentation or by
 * pasted text. */
static void add_faults(const struct yaml_stream *stream, enum paste_verdict pasted,
                       struct job_problems *problems)
{
    size_t known = problems->count;
    for (size_t i = 0; i < stream->fault_count; i++) {
        const struct yaml_fault *fault = &stream->faults[i];
        struct job_problems before = {.list = problems->list, .count = known};
        int first = pasted == PASTE_CLEAN || !fault->fatal ? fault->place.line : 1;
        if (!said(&before, first, fault->place.line)) {
            job_problem_place(problems, JOB_ERROR, fault->place, fault->path, fault->hint, "%s",
                              fault->message);
        }
    }
}

/* ---- consequences of a fault that was reported ---- */

struct consequences {
    const struct yaml_stream *stream;
    const struct job_problems *said; /* the first `count` of them were reported before */
    size_t count;
};

/* Whether `path` is the field `of` or below it. */
static bool is_below(const char *path, const char *of)
{
    size_t length = strlen(of);
    return length > 0 && strncmp(path, of, length) == 0 &&
           (path[length] == '\0' || path[length] == '.' || path[length] == '[');
}

/* Whether a problem only follows from another one. Text below a syntax error was not read as it was
 * meant, a key just before the error is not really empty, and a field that cannot be read needs no
 * other message. */
static bool follows(const struct job_problem *problem, void *arg)
{
    const struct consequences *c = arg;
    for (size_t i = 0; i < c->stream->fault_count; i++) {
        const struct yaml_fault *fault = &c->stream->faults[i];
        bool cut_off = problem->line == fault->place.line - 1 &&
                       strncmp(problem->message, "has no value", strlen("has no value")) == 0;
        if (fault->fatal ? problem->line >= fault->place.line || cut_off
                         : fault->path && problem->line == fault->place.line &&
                               is_below(problem->path, fault->path)) {
            return true;
        }
    }
    struct job_problems before = {.list = c->said->list, .count = c->count};
    return said(&before, problem->line, problem->line);
}

/* Returns the last line before the next document. */
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

static int add_object(struct reader *reader, const struct yaml_document *source)
{
    struct job_file *file = reader->file;
    if (file->object_count == reader->room) {
        size_t room = reader->room ? reader->room * 2 : 16;
        json_t **objects = reallocarray(file->objects, room, sizeof(json_t *));
        file->objects = objects ? objects : file->objects;
        struct yaml_document *sources = reallocarray(file->sources, room, sizeof *sources);
        file->sources = sources ? sources : file->sources;
        if (!objects || !sources) {
            return MUSTER_ENOMEM;
        }
        reader->room = room;
    }
    file->sources[file->object_count] = *source;
    file->objects[file->object_count++] = source->doc;
    return 0;
}

/* Whether the object is a list of objects, as kubectl prints it: kind List, or PyTorchJobList. */
static bool is_list(const json_t *object)
{
    const char *kind = doc_text(object, "kind", "");
    size_t length = strlen(kind);
    return length >= 4 && strcmp(kind + length - 4, "List") == 0;
}

static void check_list(struct reader *reader, const struct yaml_document *source)
{
    if (!json_is_array(json_object_get(source->doc, "items"))) {
        job_problem_place(reader->problems, JOB_ERROR, yaml_place_of(source, "items"), "items",
                          NULL, "must be a list of objects");
    }
}

static int read_object(struct reader *reader, const struct yaml_document *source, bool partial,
                       int depth)
{
    assert(depth > 0); /* yaml_limits_default.depth_max */
    if (!is_list(source->doc)) {
        int r = job_upgrade(source->doc, source, reader->problems);
        struct check c;
        check_init(&c, source, reader->problems);
        c.partial = partial;
        check_object(&c, source->doc);
        check_done(&c);
        return r < 0 ? r : add_object(reader, source);
    }
    json_t *items = json_object_get(source->doc, "items");
    int r = 0;
    check_list(reader, source);
    size_t i;
    json_t *item;
    json_array_foreach (items, i, item) {
        char path[32];
        (void)snprintf(path, sizeof path, "items[%zu]", i);
        const struct yaml_document part = yaml_part(source, item, path);
        bool last = i + 1 == json_array_size(items);
        r = r < 0 ? r : read_object(reader, &part, partial && last, depth - 1);
    }
    return r;
}

/* The problems from `marked` to `misplaced` name misplaced fields: the content of their documents
 * is not checked. */
static int read_objects(struct job_file *file, size_t marked, size_t misplaced,
                        struct job_problems *problems)
{
    const struct yaml_stream *stream = &file->stream;
    bool broken = stream->fault_count > 0 && stream->faults[stream->fault_count - 1].fatal;
    struct job_problems before = {.count = misplaced - marked};
    struct reader reader = {.file = file, .problems = problems};
    for (size_t i = 0; i < stream->document_count; i++) {
        const struct yaml_document *document = &stream->documents[i];
        before.list = problems->list ? problems->list + marked : NULL;
        if (!document->doc) {
            continue;
        }
        bool explained = said(&before, yaml_place_of(document, "").line, last_line(stream, i));
        bool partial = broken && i + 1 == stream->document_count;
        int r = explained ? add_object(&reader, document)
                          : read_object(&reader, document, partial, LISTS_MAX);
        if (r < 0) {
            return r;
        }
    }
    job_references_unique(file->objects, file->sources, file->object_count, problems);
    if (problems->errors == 0 && problems->advice) {
        job_references_check(file->objects, file->sources, file->object_count, problems);
    }
    return 0;
}

/* The problems from index `marked` on name misplaced fields; those before it are about pasted
 * text. */
static int check_documents(struct job_file *file, enum paste_verdict pasted, size_t marked,
                           struct job_problems *problems)
{
    size_t misplaced = problems->count;
    add_faults(&file->stream, pasted, problems);
    size_t faults = problems->count;
    int r = read_objects(file, marked, misplaced, problems);
    struct consequences consequences = {&file->stream, problems, marked};
    job_problems_drop(problems, faults, follows, &consequences);
    return r;
}

int job_file_read(const char *text, size_t bytes, struct job_file *ret,
                  struct job_problems *problems, struct muster_err *err)
{
    struct job_file file = {0};
    int r = yaml_load(text, bytes, &yaml_limits_default, &file.stream, err);
    if (r != 0) {
        return r;
    }
    /* Otherwise the first fault reports this, and no character of the text has a meaning. */
    enum paste_verdict pasted =
        text_is_utf8(text, bytes) ? paste_check(text, bytes, problems) : PASTE_CLEAN;
    size_t marked = problems->count;
    if (pasted == PASTE_CLEAN && may_be_misplaced(&file.stream)) {
        job_indent_check(text, bytes, problems);
    }
    if (pasted != PASTE_FOREIGN) {
        r = check_documents(&file, pasted, marked, problems);
    }
    if (r != 0) {
        job_file_done(&file);
        return muster_fail(err, r, "out of memory");
    }
    if (file.object_count == 0 && problems->errors == 0) {
        job_problem_add(problems, JOB_ERROR, NULL, NULL, "there is nothing in this file");
    }
    *ret = file;
    return 0;
}

void job_file_done(struct job_file *file)
{
    free(file->objects); /* the stream owns the objects */
    free(file->sources);
    yaml_done(&file->stream);
    *file = (struct job_file){0};
}
