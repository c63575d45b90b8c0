/* See problem.h. */
#include "job/problem.h"

#include "base/cleanup.h"

#include <stdlib.h>
#include <string.h>

enum { MESSAGE_BYTES_MAX = 2048 };

static const char *const severity_names[] = {
    [JOB_ERROR] = "error", [JOB_WARNING] = "warning", [JOB_INFO] = "note"};

void job_problems_init(struct job_problems *p, size_t max)
{
    *p = (struct job_problems){.max = max};
}

static void problem_done(struct job_problem *problem)
{
    free(problem->path);
    free(problem->message);
    free(problem->hint);
}

void job_problems_done(struct job_problems *p)
{
    for (size_t i = 0; i < p->count; i++) {
        problem_done(&p->list[i]);
    }
    free(p->list);
    *p = (struct job_problems){0};
}

/* Makes a message printable: one line of UTF-8, without terminal controls. Messages quote the file,
 * which may contain anything, and may cut it anywhere. */
static char *printable(char *text)
{
    json_t *whole = text ? json_string(text) : NULL;
    for (char *at = text; !whole && at && *at; at++) {
        if ((unsigned char)*at >= 0x80) {
            *at = '?';
        }
    }
    json_decref(whole);
    for (char *at = text; at && *at; at++) {
        bool control = (unsigned char)*at < 0x20 || *at == 0x7f;
        bool control_8bit = (unsigned char)at[0] == 0xc2 && (unsigned char)at[1] < 0xa0;
        if (control || control_8bit) {
            *at = '?';
            at[control_8bit] = '?';
        }
    }
    return text;
}

/* Returns a new last problem, zeroed, or NULL if the list is full or out of memory. */
static struct job_problem *grow(struct job_problems *p)
{
    if (p->count >= p->max) {
        return NULL;
    }
    if ((p->count & (p->count - 1)) == 0) { /* full at each power of two */
        size_t room = p->count ? 2 * p->count : 1;
        struct job_problem *list = reallocarray(p->list, room, sizeof *list);
        if (!list) {
            return NULL;
        }
        p->list = list;
    }
    p->list[p->count] = (struct job_problem){0};
    return &p->list[p->count];
}

void job_problem_add(struct job_problems *p, enum job_severity severity, const char *path,
                     const char *hint, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    job_problem_vplace(p, severity, (struct yaml_place){0, 0}, path, hint, format, args);
    va_end(args);
}

void job_problem_reason(struct job_problems *p, const char *reason)
{
    if (p->count > 0 && p->dropped == 0) {
        p->list[p->count - 1].reason = reason;
    }
}

void job_problem_place(struct job_problems *p, enum job_severity severity, struct yaml_place place,
                       const char *path, const char *hint, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    job_problem_vplace(p, severity, place, path, hint, format, args);
    va_end(args);
}

void job_problem_vplace(struct job_problems *p, enum job_severity severity, struct yaml_place place,
                        const char *path, const char *hint, const char *format, va_list args)
{
    p->errors += severity == JOB_ERROR;
    struct job_problem *problem = grow(p);
    if (!problem) {
        p->dropped++;
        return;
    }
    struct buf message;
    buf_init(&message, MESSAGE_BYTES_MAX);
    buf_vformat(&message, format, args);
    if (buf_failed(&message)) {
        buf_clear(&message);
        buf_text(&message, "something is wrong here, and its description is too long to print");
    }
    problem->severity = severity;
    problem->line = place.line;
    problem->column = place.column;
    problem->message = printable(buf_steal(&message));
    problem->path = printable(strdup(path ? path : ""));
    problem->hint = hint ? printable(strdup(hint)) : NULL;
    p->count++;
}

void job_problems_drop(struct job_problems *p, size_t from,
                       bool (*drop)(const struct job_problem *problem, void *arg), void *arg)
{
    size_t kept = from;
    for (size_t i = from; i < p->count; i++) {
        if (drop(&p->list[i], arg)) {
            p->errors -= p->list[i].severity == JOB_ERROR;
            problem_done(&p->list[i]);
        } else {
            p->list[kept++] = p->list[i];
        }
    }
    p->count = kept < p->count ? kept : p->count;
}

/* Orders by the place in the document; problems without a place come first. */
static int compare(const void *left, const void *right)
{
    const struct job_problem *a = *(const struct job_problem *const *)left;
    const struct job_problem *b = *(const struct job_problem *const *)right;
    if (a->line != b->line) {
        return a->line < b->line ? -1 : 1;
    }
    if (a->column != b->column) {
        return a->column < b->column ? -1 : 1;
    }
    return a < b ? -1 : a > b;
}

static void print_one(const struct job_problem *problem, const char *file, struct buf *out)
{
    buf_text(out, file);
    if (problem->line > 0) {
        buf_format(out, ":%d:%d", problem->line, problem->column);
    }
    buf_format(out, ": %s: ", severity_names[problem->severity]);
    if (problem->path && *problem->path) {
        buf_format(out, "%s: ", problem->path);
    }
    buf_text(out, problem->message ? problem->message : "(out of memory)");
    if (problem->hint) {
        buf_format(out, " (%s)", problem->hint);
    }
    buf_text(out, "\n");
}

void job_problems_print(const struct job_problems *p, const char *file, struct buf *out)
{
    muster_auto(free) const struct job_problem **sorted = calloc(p->count + 1, sizeof *sorted);
    if (!sorted) {
        buf_format(out, "%s: out of memory\n", file);
        return;
    }
    for (size_t i = 0; i < p->count; i++) {
        sorted[i] = &p->list[i];
    }
    qsort(sorted, p->count, sizeof *sorted, compare);
    for (size_t i = 0; i < p->count; i++) {
        print_one(sorted[i], file, out);
    }
    if (p->dropped) {
        buf_format(out, "%s: %zu more\n", file, p->dropped);
    }
}
