/* See indent.h.
 *
 * Open mappings form a stack of scopes. A key without a value opens two: the fields below it may be
 * indented, as they should be, or stand in the key's own column. The latter is a "beside" scope: a
 * field of that column that the scope around does not know, but this one does, is misplaced. */
#include "job/file/indent.h"

#include "job/file/line.h"
#include "job/schema.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { SCOPES_MAX = 64, PATH_BYTES_MAX = 256, NAME_BYTES_MAX = 64, FIELDS_MAX = 1024 };

struct scope {
    int column;
    bool beside;               /* not indented: its fields are misplaced */
    bool known;                /* its fields are in the schema */
    enum schema_type type;     /* if `known` */
    char name[NAME_BYTES_MAX]; /* name of the key that opened it */
    int line;                  /* line of that key, or of the item's first key */
    char path[PATH_BYTES_MAX];
    uint64_t
        used[FIELDS_MAX / 64]; /* fields seen, so that a second `spec` is not taken for the first */
    /* The list that is open in this scope: */
    const struct schema_field *list;
    int list_dash; /* column of its dashes; -1: no item yet */
    int list_item; /* column of its items' keys */
    int list_line;
    int list_count;
};

struct pass {
    bool begun; /* this document already had a key */
    struct scope scopes[SCOPES_MAX];
    int depth;
    struct job_problems *problems;
};

static struct scope *top(struct pass *p)
{
    return &p->scopes[p->depth - 1];
}

static size_t field_index(const struct schema_field *field)
{
    size_t count;
    return (size_t)(field - schema_fields(&count)) % FIELDS_MAX;
}

static bool is_used(const struct scope *scope, const struct schema_field *field)
{
    size_t i = field_index(field);
    return scope->used[i / 64] >> (i % 64) & 1;
}

static void set_used(struct scope *scope, const struct schema_field *field)
{
    size_t i = field_index(field);
    scope->used[i / 64] |= (uint64_t)1 << (i % 64);
}

static struct scope *push(struct pass *p, int column, int line)
{
    if (p->depth == SCOPES_MAX) {
        p->depth--; /* deeper than any schema: the fields there are unknown anyway */
    }
    struct scope *scope = &p->scopes[p->depth++];
    *scope = (struct scope){.column = column, .line = line, .list_dash = -1};
    return scope;
}

static void start_document(struct pass *p)
{
    p->begun = false;
    p->depth = 0;
    struct scope *root = push(p, 0, 0);
    root->known = true;
    root->type = SCHEMA_job;
}

static void say(struct pass *p, const struct line *line, const char *hint, const char *message)
{
    struct yaml_place place = {line->number, line->column + 1};
    job_problem_place(p->problems, JOB_ERROR, place, NULL, hint, "%s", message);
}

/* --- a key in its scope --- */

/* Returns the field of this name in the scope, or NULL if it was used before: then the key belongs
 * to another scope. */
static const struct schema_field *unused_field(const struct scope *scope, const char *key)
{
    const struct schema_field *field = scope->known ? schema_find(scope->type, key) : NULL;
    return field && !is_used(scope, field) ? field : NULL;
}

/* Chooses the scope for the key: the scope of its column if that knows the key, otherwise the
 * innermost scope beside it that does. *ret_field is NULL if none does. */
static int choose_scope(struct pass *p, const struct line *line, const char *key,
                        const struct schema_field **ret_field)
{
    int real = p->depth - 1;
    while (real > 0 && p->scopes[real].beside && p->scopes[real].column == line->column) {
        real--;
    }
    *ret_field = unused_field(&p->scopes[real], key);
    for (int i = p->depth - 1; i > real && !*ret_field; i--) {
        *ret_field = unused_field(&p->scopes[i], key);
        if (*ret_field) {
            return i;
        }
    }
    return real;
}

static void report_beside(struct pass *p, const struct line *line, const char *key,
                          const struct scope *scope)
{
    char message[2 * PATH_BYTES_MAX + 2 * NAME_BYTES_MAX + 64];
    char hint[NAME_BYTES_MAX + 64];
    if (line->column == p->scopes[0].column) {
        snprintf(message, sizeof message, "%s is at top level; did you mean %s.%s?", key,
                 scope->path, key);
    } else {
        snprintf(message, sizeof message,
                 "%s is aligned with %s, not below it; did you mean %s.%s?", key, scope->name,
                 scope->path, key);
    }
    snprintf(hint, sizeof hint, "indent it below %s in line %d", scope->name, scope->line);
    say(p, line, hint, message);
}

/* Sets the root's type by the kind, which comes first in nearly every file. */
static void note_kind(struct scope *root, const struct line *line)
{
    static const enum schema_type types[] = {SCHEMA_job, SCHEMA_config_map, SCHEMA_secret,
                                             SCHEMA_claim, SCHEMA_namespace};
    bool quoted = line->value_length > 1 && (line->value[0] == '"' || line->value[0] == '\'');
    const char *kind = line->value + quoted;
    size_t length = line->value_length - 2 * quoted;
    root->known = false;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        const char *title = schema_title(types[i]);
        if (strlen(title) == length && memcmp(title, kind, length) == 0) {
            root->known = true;
            root->type = types[i];
        }
    }
}

/* Opens what follows the key: a list in its scope, or a mapping whose fields may be in any
 * column. */
static void open_value(struct pass *p, const struct line *line, const char *key,
                       const struct schema_field *field)
{
    struct scope *scope = top(p);
    scope->list = NULL;
    if (line->value_length > 0) {
        return;
    }
    char path[PATH_BYTES_MAX];
    snprintf(path, sizeof path, "%s%s%s", scope->path, *scope->path ? "." : "", key);
    if (field && field->kind == SCHEMA_LIST) {
        scope->list = field;
        scope->list_dash = -1;
        scope->list_count = 0;
        return;
    }
    struct scope *opened = push(p, line->column, line->number);
    opened->beside = true;
    opened->known = field && field->kind == SCHEMA_OBJECT;
    opened->type = opened->known ? field->of : SCHEMA_job;
    memcpy(opened->path, path, sizeof path);
    snprintf(opened->name, sizeof opened->name, "%s", key);
}

static void take_key(struct pass *p, const struct line *line, const char *key)
{
    const struct schema_field *field;
    int chosen = choose_scope(p, line, key, &field);
    struct scope *scope = &p->scopes[chosen];
    if (field && scope->beside) {
        report_beside(p, line, key, scope);
    }
    if (field) {
        set_used(scope, field);
    }
    p->depth = chosen + 1;
    if (chosen == 0 && strcmp(key, "kind") == 0) {
        note_kind(scope, line);
    }
    open_value(p, line, key, field);
}

/* --- columns --- */

/* Reports a key in the column of the dashes above it: a field of the item that lost its
 * indentation. For YAML this is a syntax error. */
static void report_item(struct pass *p, const struct line *line, const char *key,
                        const struct scope *scope)
{
    char message[NAME_BYTES_MAX + 128];
    snprintf(message, sizeof message,
             "%s is not aligned with the list item of line %d, which makes it a YAML syntax error",
             key, scope->list_line);
    char hint[NAME_BYTES_MAX + 64];
    snprintf(hint, sizeof hint, "start it in column %d", scope->list_item + 1);
    say(p, line, hint, message);
}

static void open_item(struct pass *p, const struct line *line, int column)
{
    struct scope *list = top(p);
    char path[PATH_BYTES_MAX];
    snprintf(path, sizeof path, "%s%s%s[%d]", list->path, *list->path ? "." : "", list->list->name,
             list->list_count);
    struct scope *item = push(p, column, line->number);
    item->known = true;
    item->type = list->list->of;
    memcpy(item->path, path, sizeof path);
    snprintf(item->name, sizeof item->name, "%s", list->list->name);
}

static void start_item(struct pass *p, const struct line *line)
{
    struct scope *scope = top(p);
    if (!scope->list) {
        push(p, line->column, line->number);
        return;
    }
    scope->list_count += scope->list_dash >= 0;
    scope->list_dash = line->dash_column;
    scope->list_item = line->column;
    scope->list_line = line->number;
    open_item(p, line, line->column);
}

/* Notes the column of the first key: text that was copied out of a page may be indented as a
 * whole. */
static void begin_at(struct pass *p, const struct line *line)
{
    if (!p->begun && line->dash_column < 0) {
        p->scopes[0].column = line->column;
    }
    p->begun = true;
}

/* Moves the stack to the scope of the key's column. */
static void settle(struct pass *p, const struct line *line, const char *key)
{
    begin_at(p, line);
    int column = line->dash_column >= 0 ? line->dash_column : line->column;
    while (p->depth > 1 && top(p)->column > column) {
        p->depth--;
    }
    struct scope *scope = top(p);
    if (line->dash_column >= 0) {
        while (p->depth > 1 && top(p)->beside && top(p)->column == column && !top(p)->list) {
            p->depth--; /* the list is in the same column as its key, whose scope contains it */
        }
        start_item(p, line);
    } else if (scope->list && scope->list_dash == column && column > scope->column) {
        report_item(p, line, key, scope);
        open_item(p, line, column);
        struct scope *item = top(p);
        const struct schema_field *first = schema_find(item->type, "name");
        if (first) {
            set_used(item, first);
        }
    } else if (scope->column < column && scope->beside) {
        scope->beside = false; /* its fields are indented correctly */
        scope->column = column;
    } else if (scope->column < column) {
        push(p, column, line->number);
    }
}

void job_indent_check(const char *text, size_t bytes, struct job_problems *problems)
{
    struct pass p = {.problems = problems};
    struct line_reader reader;
    struct line line;
    line_reader_init(&reader, text, bytes);
    start_document(&p);
    while (line_next(&reader, &line)) {
        char key[NAME_BYTES_MAX];
        if (!line.key) {
            start_document(&p);
        } else if (line.key_length < sizeof key) {
            memcpy(key, line.key, line.key_length);
            key[line.key_length] = '\0';
            settle(&p, &line, key);
            take_key(&p, &line, key);
        }
    }
}
