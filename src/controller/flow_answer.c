/* Handles the answers to a flow's requests: each item becomes done, refused or to be looked at, and
 * the result is reported. See flow.h.
 */
#include "base/doc.h"
#include "control/projection/node.h"
#include "controller/flow.h"
#include "controller/planted.h"

#include <assert.h>
#include <string.h>

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

/* Marks the effect as done; the event that belongs to it, which follows it, is due. */
static void succeed(struct flow *f, size_t i)
{
    f->items[i].state = DONE;
    f->careful = f->careful && f->items[i].phase != CREATES;
    if (i + 1 < f->count && f->fx.list[i + 1].of_previous) {
        assert(f->tell_one == f->count && "flow_next comes after each answer");
        f->tell_one = i + 1;
    }
}

/* An effect that the caches have shown already needs no report. */
static void settle(struct flow *f, size_t i, const struct flow_answer *answer)
{
    if (answer->was_shown) {
        f->items[i].state = DONE;
    } else {
        succeed(f, i);
    }
}

static void expect_object(struct flow *f, size_t i, const json_t *object)
{
    if (expect_version(&f->expected, f->items[i].expectation, version_of(object)) < 0) {
        flow_fail(f, FLOW_FAILED, MUSTER_ENOMEM, 0);
    }
}

static void expect_end(struct flow *f, size_t i, bool is_shown)
{
    const char *uid = f->fx.list[i].uid;
    if (expect_gone(&f->expected, f->items[i].expectation, uid ? uid : "", is_shown) < 0) {
        flow_fail(f, FLOW_FAILED, MUSTER_ENOMEM, 0);
    }
}

static void refuse(struct flow *f, size_t i, enum flow_outcome outcome,
                   const struct flow_answer *answer)
{
    f->items[i].state = REFUSED;
    expect_nothing(&f->expected, f->items[i].expectation);
    flow_fail(f, outcome, answer->code, answer->retry_after_ms);
}

/* Whether only a person can remove the cause. */
static bool will_stay(int code)
{
    return code == MUSTER_EPERM || code == MUSTER_EINVAL || code == MUSTER_ETOOBIG;
}

/* What the user is told: each refusal that a server explained; nothing about answers that were
 * lost. */
static enum flow_told refusal(const struct flow_answer *answer)
{
    return answer->unsure && !answer->explained ? FLOW_SILENT : FLOW_REFUSED;
}

/* A write of the job was answered. If it succeeded, the job was as the view shows it. */
static enum flow_told job_written(struct flow *f, size_t i, const struct flow_answer *answer)
{
    bool changed = answer->code == MUSTER_ECONFLICT || answer->code == MUSTER_ENOENT;
    if (answer->code < 0) {
        refuse(f, i, changed ? FLOW_AGAIN : FLOW_FAILED, answer);
        return will_stay(answer->code) ? FLOW_REFUSED : FLOW_SILENT;
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

/* An object counts as deleted if it does not exist or has another uid now. */
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
        return refusal(answer);
    }
    if (is_job) {
        expect_nothing(&f->expected, f->items[i].expectation);
    } else {
        expect_end(f, i, answer->is_shown);
    }
    settle(f, i, answer);
    return FLOW_SILENT;
}

/* If the object has another uid or is gone, the view was old. A patch that changes nothing does not
 * appear in a watch. */
static enum flow_told updated(struct flow *f, size_t i, const struct flow_answer *answer)
{
    bool changed = answer->code == MUSTER_ECONFLICT || answer->code == MUSTER_ENOENT;
    if (answer->code < 0) {
        refuse(f, i, changed ? FLOW_AGAIN : FLOW_FAILED, answer);
        return changed ? FLOW_SILENT : refusal(answer);
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
        return refusal(answer);
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

bool flow_is_done(const struct flow *f, size_t i)
{
    assert(i < f->count);
    return f->items[i].state == DONE;
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
    bool claim = f->fx.list[i].resource == CONTROL_CLAIM; /* a claim is used, whoever created it */
    bool ends = doc_at(object, "metadata.deletionTimestamp") != NULL;
    if (!claim && !is_ours(f, object)) {
        const struct flow_answer taken = {.code = MUSTER_EEXIST};
        refuse(f, i, FLOW_FAILED, &taken);
        return FLOW_STRANGER;
    }
    expect_object(f, i, object);
    if (ends && !claim) {
        item->state = REFUSED;
        flow_fail(f, FLOW_AGAIN, MUSTER_EEXIST, 0);
    } else {
        settle(f, i, answer);
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
        flow_fail(f, known ? FLOW_AGAIN : FLOW_FAILED, known ? MUSTER_ECONFLICT : answer->code,
                  answer->retry_after_ms);
    }
}

void flow_looked_at_job(struct flow *f, const struct flow_answer *answer)
{
    assert(f->looking && f->under_way > 0);
    f->looking = false;
    f->under_way--;
    if (answer->code < 0) {
        flow_fail(f, answer->code == MUSTER_ENOENT ? FLOW_AGAIN : FLOW_FAILED, answer->code,
                  answer->retry_after_ms);
        return;
    }
    f->vouched = strcmp(version_of(answer->object), version_of(f->job)) == 0;
    if (!f->vouched) {
        int number = expect_sent(&f->expected, CONTROL_JOB, doc_text(f->job, "metadata.name", ""));
        if (number >= 0) {
            (void)expect_version(&f->expected, number, version_of(answer->object));
        }
        flow_fail(f, FLOW_AGAIN, MUSTER_ECONFLICT, 0);
    }
}
