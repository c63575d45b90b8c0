/* See context.h. */
#include "job/check/context.h"

#include <stdio.h>
#include <string.h>

enum { PATH_BYTES_MAX = 2048 };

void check_init(struct check *c, const struct yaml_document *source, struct job_problems *problems)
{
    *c = (struct check){.problems = problems, .source = source};
    buf_init(&c->path, PATH_BYTES_MAX);
}

void check_done(struct check *c)
{
    buf_done(&c->path);
}

/* If the path becomes too long, the key is left out: its problems are then reported at an
 * ancestor. */
size_t check_enter(struct check *c, const char *key)
{
    size_t mark = c->path.used;
    yaml_path_key(&c->path, key);
    if (buf_failed(&c->path)) {
        buf_truncate(&c->path, mark);
    }
    return mark;
}

size_t check_enter_index(struct check *c, size_t index)
{
    size_t mark = c->path.used;
    yaml_path_index(&c->path, index);
    if (buf_failed(&c->path)) {
        buf_truncate(&c->path, mark);
    }
    return mark;
}

void check_leave(struct check *c, size_t mark)
{
    buf_truncate(&c->path, mark);
}

static bool same_place(struct yaml_place a, struct yaml_place b)
{
    return a.line == b.line && a.column == b.column;
}

/* Returns the place of a field. A field that an old layout had directly under spec is there in the
 * text (layout.c moved it): then `path` is only found as far as spec.runPolicy or spec, and the old
 * path is found further. */
static struct yaml_place place_of(const struct check *c, const char *path)
{
    static const char moved[] = "spec.runPolicy.";
    struct yaml_place place = yaml_place_of(c->source, path);
    if (!c->source || strncmp(path, moved, sizeof moved - 1) != 0) {
        return place;
    }
    char old[PATH_BYTES_MAX];
    snprintf(old, sizeof old, "spec.%s", path + sizeof moved - 1);
    struct yaml_place old_place = yaml_place_of(c->source, old);
    bool missing = same_place(place, yaml_place_of(c->source, "spec.runPolicy"));
    bool was_there = !same_place(old_place, yaml_place_of(c->source, "spec"));
    return missing && was_there ? old_place : place;
}

void check_say(struct check *c, enum job_severity severity, const char *below, const char *hint,
               const char *format, ...)
{
    size_t mark = below ? check_enter(c, below) : c->path.used;
    struct yaml_place place = {0, 0};
    if (c->problems->count < c->problems->max) {
        place = place_of(c, buf_str(&c->path));
    }
    va_list args;
    va_start(args, format);
    job_problem_vplace(c->problems, severity, place, buf_str(&c->path), hint, format, args);
    va_end(args);
    buf_truncate(&c->path, mark);
}

void check_reason(struct check *c, const char *reason)
{
    job_problem_reason(c->problems, reason);
}

void check_required(struct check *c, const char *below, const char *hint, const char *message)
{
    check_say(c, JOB_ERROR, below, hint, "%s", message);
    check_reason(c, "FieldValueRequired");
}
