/* See expect.h. */
#include "controller/expect.h"

#include "controller/cluster.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum kind {
    NOTHING,
    SENT,    /* no answer yet */
    VERSION, /* waits for `wanted` or a newer version */
    GONE,    /* waits until the object with uid `wanted` is gone */
};

struct expectation {
    enum kind kind;
    enum control_resource resource;
    char *name;
    char *wanted;
    char *shown; /* the newest version that was shown since the write was sent */
};

static void forget(struct expectation *e)
{
    free(e->name);
    free(e->wanted);
    free(e->shown);
    *e = (struct expectation){.kind = NOTHING};
}

void expect_clear(struct expectations *x)
{
    for (size_t i = 0; i < x->count; i++) {
        forget(&x->list[i]);
    }
    x->count = 0;
}

void expect_done(struct expectations *x)
{
    expect_clear(x);
    free(x->list);
    *x = (struct expectations){0};
}

int expect_sent(struct expectations *x, enum control_resource resource, const char *name)
{
    assert(x->count < INT_MAX);
    if (x->count == x->room) {
        size_t room = x->room ? 2 * x->room : 8;
        struct expectation *list = realloc(x->list, room * sizeof *list);
        if (!list) {
            return MUSTER_ENOMEM;
        }
        x->list = list;
        x->room = room;
    }
    char *copy = strdup(name);
    if (!copy) {
        return MUSTER_ENOMEM;
    }
    x->list[x->count] = (struct expectation){.kind = SENT, .resource = resource, .name = copy};
    return (int)x->count++;
}

static struct expectation *at(struct expectations *x, int number)
{
    assert(number >= 0 && (size_t)number < x->count);
    return &x->list[number];
}

static bool is_met(const struct expectation *e)
{
    return e->kind == NOTHING ||
           (e->kind == VERSION && cluster_version_compare(e->shown, e->wanted) >= 0);
}

int expect_version(struct expectations *x, int number, const char *version)
{
    struct expectation *e = at(x, number);
    char *copy = strdup(version);
    if (!copy) {
        return MUSTER_ENOMEM;
    }
    free(e->wanted);
    e->kind = VERSION;
    e->wanted = copy;
    return 0;
}

int expect_gone(struct expectations *x, int number, const char *uid, bool is_shown)
{
    struct expectation *e = at(x, number);
    char *copy = is_shown ? NULL : strdup(uid);
    if (is_shown) {
        forget(e);
        return 0;
    }
    if (!copy) {
        return MUSTER_ENOMEM;
    }
    free(e->wanted);
    e->kind = GONE;
    e->wanted = copy;
    return 0;
}

void expect_nothing(struct expectations *x, int number)
{
    forget(at(x, number));
}

static void note_shown(struct expectation *e, const char *version)
{
    if (cluster_version_compare(e->shown, version) < 0) {
        char *copy = strdup(version);
        free(e->shown);
        e->shown = copy; /* without memory, the wait only takes longer */
    }
}

void expect_shown(struct expectations *x, enum control_resource resource, const char *name,
                  const char *uid, const char *version, bool gone)
{
    for (size_t i = 0; i < x->count; i++) {
        struct expectation *e = &x->list[i];
        if (e->kind == NOTHING || e->resource != resource || strcmp(e->name, name) != 0) {
            continue;
        }
        bool other = e->kind == GONE && strcmp(e->wanted, uid) != 0;
        if (e->kind == GONE && (gone || other)) {
            forget(e);
        } else {
            note_shown(e, version);
        }
    }
}

void expect_listed(struct expectations *x, enum control_resource resource, const char *version)
{
    for (size_t i = 0; i < x->count; i++) {
        struct expectation *e = &x->list[i];
        if (e->kind != NOTHING && e->resource == resource) {
            note_shown(e, version);
        }
    }
}

bool expect_is_met(const struct expectations *x)
{
    for (size_t i = 0; i < x->count; i++) {
        if (!is_met(&x->list[i])) {
            return false;
        }
    }
    return true;
}
