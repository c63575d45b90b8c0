/* See flow.h. */
#include "controller/flow.h"

#include "base/doc.h"
#include "control/projection/node.h"
#include "controller/planted.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum phase { STATUS, NEWS, DELETES, CREATES, END, PHASES }; /* CREATES: updates, too */

enum state {
    WAITING,
    TAKEN, /* its name is: a look is due */
    LOST,  /* its node is, still */
    SENT,
    DONE,
    REFUSED,
};

/* One for each effect; events and the wake are DONE from the start. */
struct flow_item {
    enum phase phase;
    enum state state;
    int expectation;
};

static enum phase phase_of(const struct control_effect *e)
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

static void fail(struct flow *f, enum flow_outcome outcome, int code, int64_t retry_after_ms)
{
    assert(outcome != FLOW_OK);
    if (f->outcome == FLOW_OK) {
        f->code = code;
    }
    f->outcome = outcome > f->outcome ? outcome : f->outcome;
    f->retry_after_ms = retry_after_ms > f->retry_after_ms ? retry_after_ms : f->retry_after_ms;
}

/* The next item of the phase that is to be sent or looked at; count: none. */
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

/* What is to be told in this turn: an event of its own, or the one that tells of the effect before
 * it. count: nothing. */
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
            fail(f, FLOW_FAILED, MUSTER_ENOMEM, 0);
            return f->under_way > 0 ? FLOW_WAIT : FLOW_END; /* nobody's answer comes */
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
        if (due < f->count && (f->under_way >= FLOW_PARALLEL || f->looking)) {
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

/* ---- answers ---- */

static struct flow_item *answered_item(struct flow *f, size_t i)
{
    assert(i < f->count && f->items[i].state == SENT && f->under_way > 0);
    f->under_way--;
    return &f->items[i];
}

static const char *version_of(const json_t *object)
{
    return doc_text(object, "metadata.resourceVersion", "");
}

/* The event that tells of it, right behind it, is due. */
static void succeed(struct flow *f, size_t i)
{
    f->items[i].state = DONE;
    if (i + 1 < f->count && f->fx.list[i + 1].of_previous) {
        assert(f->tell_one == f->count && "flow_next comes after each answer");
        f->tell_one = i + 1;
    }
}

static void expect_object(struct flow *f, size_t i, const json_t *object)
{
    if (expect_version(&f->expected, f->items[i].expectation, version_of(object)) < 0) {
        fail(f, FLOW_FAILED, MUSTER_ENOMEM, 0);
    }
}

static void expect_end(struct flow *f, size_t i, bool is_shown)
{
    const char *uid = f->fx.list[i].uid;
    if (expect_gone(&f->expected, f->items[i].expectation, uid ? uid : "", is_shown) < 0) {
        fail(f, FLOW_FAILED, MUSTER_ENOMEM, 0);
    }
}

static void refuse(struct flow *f, size_t i, enum flow_outcome outcome,
                   const struct flow_answer *answer)
{
    f->items[i].state = REFUSED;
    expect_nothing(&f->expected, f->items[i].expectation);
    fail(f, outcome, answer->code, answer->retry_after_ms);
}

/* A write of the job: it found the job as it was. */
static enum flow_told job_written(struct flow *f, size_t i, const struct flow_answer *answer)
{
    bool changed = answer->code == MUSTER_ECONFLICT || answer->code == MUSTER_ENOENT;
    if (answer->code < 0) {
        refuse(f, i, changed ? FLOW_AGAIN : FLOW_FAILED, answer);
        return FLOW_SILENT;
    }
    if (answer->object) {
        json_decref(f->job);
        f->job = json_incref(answer->object);
        expect_object(f, i, answer->object);
    } else {
        expect_nothing(&f->expected, f->items[i].expectation);
    }
    f->vouched = true;
    succeed(f, i);
    return FLOW_SILENT;
}

/* What is not there, or is another one by now, is gone. */
static enum flow_told deleted(struct flow *f, size_t i, const struct flow_answer *answer)
{
    bool is_job = f->items[i].phase == END;
    bool gone = answer->code == MUSTER_ENOENT;
    if (answer->code == MUSTER_ECONFLICT) {
        refuse(f, i, FLOW_AGAIN, answer);
        return FLOW_SILENT;
    }
    if (answer->code < 0 && !gone) {
        refuse(f, i, FLOW_FAILED, answer);
        return FLOW_REFUSED;
    }
    if (is_job) {
        expect_nothing(&f->expected, f->items[i].expectation);
    } else {
        expect_end(f, i, answer->is_shown);
    }
    succeed(f, i);
    return FLOW_SILENT;
}

/* Another one by now, or gone: the view was old. A patch that changes nothing is not shown. */
static enum flow_told updated(struct flow *f, size_t i, const struct flow_answer *answer)
{
    bool changed = answer->code == MUSTER_ECONFLICT || answer->code == MUSTER_ENOENT;
    if (answer->code < 0) {
        refuse(f, i, changed ? FLOW_AGAIN : FLOW_FAILED, answer);
        return changed || answer->unsure ? FLOW_SILENT : FLOW_REFUSED;
    }
    if (answer->is_shown) {
        expect_nothing(&f->expected, f->items[i].expectation);
    } else {
        expect_object(f, i, answer->object);
    }
    succeed(f, i);
    return FLOW_SILENT;
}

static enum flow_told created(struct flow *f, size_t i, const struct flow_answer *answer)
{
    if (answer->code == MUSTER_EEXIST && PLANTED_DRIVER(TAKEN_IS_DONE)) {
        expect_nothing(&f->expected, f->items[i].expectation);
        succeed(f, i);
        return FLOW_SILENT;
    }
    if (answer->code == MUSTER_EEXIST) {
        f->items[i].state = TAKEN;
        return FLOW_SILENT;
    }
    if (answer->code < 0) {
        refuse(f, i, FLOW_FAILED, answer);
        return answer->unsure ? FLOW_SILENT : FLOW_REFUSED;
    }
    expect_object(f, i, answer->object);
    succeed(f, i);
    return FLOW_SILENT;
}

enum flow_told flow_answered(struct flow *f, size_t i, const struct flow_answer *answer)
{
    const struct flow_item *item = answered_item(f, i);
    switch (item->phase) {
    case STATUS: return job_written(f, i, answer);
    case DELETES:
    case END: return deleted(f, i, answer);
    case CREATES:
        return f->fx.list[i].verb == CONTROL_UPDATE ? updated(f, i, answer) : created(f, i, answer);
    case NEWS:
    case PHASES: break;
    }
    assert(!"an event is no item");
    return FLOW_SILENT;
}

static bool is_ours(const struct flow *f, const json_t *object)
{
    const char *uid = doc_text(f->job, "metadata.uid", "");
    const json_t *owner = doc_find(doc_at(object, "metadata.ownerReferences"), "uid", uid);
    return doc_bool(owner, "controller", false);
}

enum flow_told flow_looked(struct flow *f, size_t i, const struct flow_answer *answer)
{
    struct flow_item *item = answered_item(f, i);
    const json_t *object = answer->object;
    if (answer->code < 0) {
        refuse(f, i, answer->code == MUSTER_ENOENT ? FLOW_AGAIN : FLOW_FAILED, answer);
        return FLOW_SILENT;
    }
    bool claim = f->fx.list[i].resource == CONTROL_CLAIM; /* whoever made it: it is used */
    bool ends = doc_at(object, "metadata.deletionTimestamp") != NULL;
    if (!claim && !is_ours(f, object)) {
        const struct flow_answer taken = {.code = MUSTER_EEXIST};
        refuse(f, i, FLOW_FAILED, &taken);
        return FLOW_STRANGER;
    }
    expect_object(f, i, object);
    if (ends && !claim) {
        item->state = REFUSED;
        fail(f, FLOW_AGAIN, MUSTER_EEXIST, 0);
    } else {
        succeed(f, i);
    }
    return FLOW_SILENT;
}

void flow_looked_at_node(struct flow *f, size_t i, const struct flow_answer *answer)
{
    struct flow_item *item = answered_item(f, i);
    bool known = answer->code == 0 || answer->code == MUSTER_ENOENT;
    bool lost =
        answer->code == 0 && control_node_is_still_lost(answer->object, f->fx.list[i].since);
    item->state = lost ? LOST : REFUSED;
    if (!lost) {
        fail(f, known ? FLOW_AGAIN : FLOW_FAILED, known ? MUSTER_ECONFLICT : answer->code,
             answer->retry_after_ms);
    }
}

void flow_looked_at_job(struct flow *f, const struct flow_answer *answer)
{
    assert(f->looking && f->under_way > 0);
    f->looking = false;
    f->under_way--;
    if (answer->code < 0) {
        fail(f, answer->code == MUSTER_ENOENT ? FLOW_AGAIN : FLOW_FAILED, answer->code,
             answer->retry_after_ms);
        return;
    }
    f->vouched = strcmp(version_of(answer->object), version_of(f->job)) == 0;
    if (!f->vouched) {
        int number = expect_sent(&f->expected, CONTROL_JOB, doc_text(f->job, "metadata.name", ""));
        if (number >= 0) {
            (void)expect_version(&f->expected, number, version_of(answer->object));
        }
        fail(f, FLOW_AGAIN, MUSTER_ECONFLICT, 0);
    }
}

void flow_not_sent(struct flow *f, int code)
{
    fail(f, FLOW_FAILED, code, 0);
}
