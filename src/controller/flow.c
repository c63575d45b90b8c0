/* See flow.h. */
#include "controller/flow.h"

#include "base/doc.h"
#include "control/projection/node.h"
#include "controller/planted.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static enum flow_phase phase_of(const struct control_effect *e)
{
    switch (e->verb) {
    case CONTROL_UPDATE_STATUS: return STATUS;
    case CONTROL_CREATE:
    case CONTROL_UPDATE: return CREATES;
    case CONTROL_DELETE: return e->resource == CONTROL_JOB ? END : DELETES;
    case CONTROL_RECORD_EVENT:
    case CONTROL_WAKE_AT: return NEWS;
    }
    return NEWS;
}

int flow_init(struct flow *f, json_t *job, struct control_effects *fx)
{
    struct flow_item *items = calloc(fx->count + 1, sizeof *items);
    if (!items) {
        return MUSTER_ENOMEM;
    }
    *f = (struct flow){.job = json_incref(job),
                       .fx = *fx,
                       .items = items,
                       .count = fx->count,
                       .tell_one = fx->count,
                       .wake_unix_ms = INT64_MAX};
    *fx = (struct control_effects){0};
    for (size_t i = 0; i < f->count; i++) {
        items[i].phase = phase_of(&f->fx.list[i]);
        items[i].state = items[i].phase == NEWS ? DONE : WAITING;
        if (f->fx.list[i].verb == CONTROL_WAKE_AT) {
            f->wake_unix_ms = f->fx.list[i].at_unix_ms;
        }
    }
    return 0;
}

void flow_done(struct flow *f)
{
    json_decref(f->job);
    control_effects_done(&f->fx);
    expect_done(&f->expected);
    free(f->items);
    *f = (struct flow){0};
}

/* ---- what to do ---- */

void flow_fail(struct flow *f, enum flow_outcome outcome, int code, int64_t retry_after_ms)
{
    assert(outcome != FLOW_OK);
    if (f->outcome == FLOW_OK) {
        f->code = code;
    }
    f->outcome = outcome > f->outcome ? outcome : f->outcome;
    f->retry_after_ms = retry_after_ms > f->retry_after_ms ? retry_after_ms : f->retry_after_ms;
}

/* Returns the next item of the phase that must be sent or looked at; count if there is none. */
static size_t find_due(struct flow *f)
{
    for (size_t i = f->next; i < f->count; i++) {
        const struct flow_item *item = &f->items[i];
        if ((int)item->phase == f->phase && item->state <= LOST) {
            return i;
        }
        f->next += i == f->next && item->state == DONE;
    }
    return f->count;
}

static bool must_look(const struct flow *f)
{
    return f->phase == CREATES && !f->vouched && !PLANTED_DRIVER(NO_LOOK);
}

/* Returns the event to send in this turn: an independent one, or the one that belongs to the effect
 * before it; count if there is none. */
static size_t find_news(struct flow *f)
{
    size_t of_previous = f->tell_one;
    f->tell_one = f->count;
    while (of_previous == f->count && f->tell < f->tell_end) {
        const struct control_effect *e = &f->fx.list[f->tell++];
        if (e->verb == CONTROL_RECORD_EVENT && !e->of_previous) {
            return f->tell - 1;
        }
    }
    return of_previous;
}

static enum flow_do send_item(struct flow *f, size_t i, size_t *ret_item)
{
    struct flow_item *item = &f->items[i];
    const struct control_effect *e = &f->fx.list[i];
    bool look = item->state == TAKEN;
    bool look_at_node = e->node && item->state == WAITING && !PLANTED_DRIVER(NO_NODE_LOOK);
    if (!look && !look_at_node) {
        bool on_job = item->phase == STATUS || item->phase == END;
        const char *name = on_job ? doc_text(f->job, "metadata.name", "") : e->name;
        item->expectation =
            expect_sent(&f->expected, on_job ? CONTROL_JOB : e->resource, name ? name : "");
        if (item->expectation < 0) {
            flow_fail(f, FLOW_FAILED, MUSTER_ENOMEM, 0);
            return f->under_way > 0 ? FLOW_WAIT : FLOW_END; /* no answer will come */
        }
    }
    item->state = SENT;
    f->under_way++;
    *ret_item = i;
    return look ? FLOW_LOOK : look_at_node ? FLOW_LOOK_NODE : FLOW_SEND;
}

static void next_phase(struct flow *f)
{
    f->phase++;
    f->next = 0;
    if (f->phase == NEWS) {
        f->tell = 0;
        f->tell_end = f->count;
    }
}

/* Returns how many requests may be in progress. */
static size_t room(const struct flow *f)
{
    return f->phase == CREATES && f->careful ? 1 : FLOW_PARALLEL;
}

static enum flow_do look_at_job(struct flow *f)
{
    f->looking = true;
    f->under_way++;
    return FLOW_LOOK_JOB;
}

enum flow_do flow_next(struct flow *f, size_t *ret_item)
{
    for (;;) {
        size_t news = find_news(f);
        if (news < f->count) {
            *ret_item = news;
            return FLOW_TELL;
        }
        if (f->phase == PHASES || f->outcome != FLOW_OK) {
            return f->under_way > 0 ? FLOW_WAIT : FLOW_END;
        }
        size_t due = find_due(f);
        if (due < f->count && (f->under_way >= room(f) || f->looking)) {
            return FLOW_WAIT;
        }
        if (due < f->count && must_look(f)) {
            return look_at_job(f);
        }
        if (due < f->count) {
            return send_item(f, due, ret_item);
        }
        if (f->under_way > 0) {
            return FLOW_WAIT;
        }
        next_phase(f);
    }
}

void flow_not_sent(struct flow *f, int code)
{
    flow_fail(f, FLOW_FAILED, code, 0);
}
