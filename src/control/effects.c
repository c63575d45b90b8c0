/* See effects.h and control.h. */
#include "control/effects.h"

#include "base/doc.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 16, TEXT_BYTES_MAX = 4096 };

static const char *const verbs[] = {
    [CONTROL_CREATE] = "create ",     [CONTROL_UPDATE] = "update ",
    [CONTROL_DELETE] = "delete ",     [CONTROL_UPDATE_STATUS] = "status",
    [CONTROL_RECORD_EVENT] = "event", [CONTROL_WAKE_AT] = "wake",
};

static const char *const nouns[CONTROL_RESOURCES] = {
    [CONTROL_JOB] = "job",
    [CONTROL_POD] = "pod",
    [CONTROL_SERVICE] = "service",
    [CONTROL_CLAIM] = "claim",
    [CONTROL_AUTOSCALER] = "autoscaler",
    [CONTROL_VOLCANO_GROUP] = "pod group",
    [CONTROL_PLUGINS_GROUP] = "pod group",
};

static bool make_room(struct control_effects *fx)
{
    if (fx->count < fx->room) {
        return true;
    }
    size_t room = fx->room ? fx->room * 2 : FIRST_ROOM;
    struct control_effect *list = realloc(fx->list, room * sizeof *list);
    if (!list) {
        fx->failed = true;
        return false;
    }
    fx->list = list;
    fx->room = room;
    return true;
}

/* Returns a new effect, NULL if it does not fit. The last place is kept for WAKE_AT. */
static struct control_effect *add(struct control_effects *fx, enum control_verb verb)
{
    assert(verb < sizeof verbs / sizeof verbs[0] && fx->count <= fx->room);
    size_t max = verb == CONTROL_WAKE_AT ? CONTROL_EFFECTS_MAX : CONTROL_EFFECTS_MAX - 1;
    if (fx->count >= max) {
        fx->full = true;
        return NULL;
    }
    if (!make_room(fx)) {
        return NULL;
    }
    struct control_effect *effect = &fx->list[fx->count++];
    *effect = (struct control_effect){.verb = verb};
    return effect;
}

static char *copy(struct control_effects *fx, const char *text)
{
    char *own = strdup(text);
    fx->failed |= own == NULL;
    return own;
}

/* Takes the object; NULL means that the caller had no memory. */
static struct control_effect *add_object(struct control_effects *fx, enum control_verb verb,
                                         json_t *object)
{
    fx->failed |= object == NULL;
    struct control_effect *effect = add(fx, verb);
    if (effect) {
        effect->object = object;
    } else {
        json_decref(object);
    }
    return effect;
}

void control_add_create(struct control_effects *fx, enum control_resource resource, json_t *object)
{
    struct control_effect *effect = add_object(fx, CONTROL_CREATE, object);
    if (effect) {
        effect->resource = resource;
        effect->name = copy(fx, doc_text(object, "metadata.name", ""));
    }
}

void control_add_update(struct control_effects *fx, enum control_resource resource,
                        const json_t *object, json_t *patch)
{
    const char *uid = doc_text(object, "metadata.uid", "");
    if (patch && doc_set_text(patch, "metadata.uid", uid) != 0) {
        json_decref(patch);
        patch = NULL;
    }
    struct control_effect *effect = add_object(fx, CONTROL_UPDATE, patch);
    if (effect) {
        effect->resource = resource;
        effect->name = copy(fx, doc_text(object, "metadata.name", ""));
    }
}

void control_add_delete(struct control_effects *fx, enum control_resource resource,
                        const json_t *object)
{
    struct control_effect *effect = add(fx, CONTROL_DELETE);
    if (effect) {
        effect->resource = resource;
        effect->name = copy(fx, doc_text(object, "metadata.name", ""));
        effect->uid = copy(fx, doc_text(object, "metadata.uid", ""));
    }
}

/* Returns the last effect; NULL if there was no room for it. */
static struct control_effect *last_effect(struct control_effects *fx, size_t before)
{
    return fx->count > before ? &fx->list[fx->count - 1] : NULL;
}

static void add_event(struct control_effects *fx, bool warning, const char *reason,
                      const char *format, va_list args)
{
    struct control_effect *effect = add(fx, CONTROL_RECORD_EVENT);
    if (!effect) {
        return;
    }
    struct buf text;
    buf_init(&text, TEXT_BYTES_MAX);
    buf_vformat(&text, format, args);
    effect->warning = warning;
    effect->name = copy(fx, reason);
    effect->text = buf_failed(&text) ? copy(fx, "(message too long)") : buf_steal(&text);
    fx->failed |= effect->text == NULL;
    buf_done(&text);
}

void control_add_event(struct control_effects *fx, bool warning, const char *reason,
                       const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_event(fx, warning, reason, format, args);
    va_end(args);
}

void control_add_success(struct control_effects *fx, const char *reason, const char *format, ...)
{
    size_t before = fx->count;
    assert(fx->full || fx->failed ||
           (before > 0 && fx->list[before - 1].verb != CONTROL_RECORD_EVENT));
    va_list args;
    va_start(args, format);
    add_event(fx, false, reason, format, args);
    va_end(args);
    if (fx->count > before) {
        fx->list[before].of_previous = true;
    }
}

void control_add_delete_lost(struct control_effects *fx, const json_t *pod,
                             const struct control_node *node)
{
    const char *name = doc_text(pod, "metadata.name", "");
    size_t before = fx->count;
    control_add_delete(fx, CONTROL_POD, pod);
    struct control_effect *effect = last_effect(fx, before);
    if (!effect) {
        return;
    }
    effect->node = copy(fx, node->name);
    if (node->out_of_service) {
        control_add_success(fx, "NodeLost", "Deleted pod: %s, whose node %s is out of service",
                            name, node->name);
    } else {
        effect->since = copy(fx, node->since);
        control_add_success(fx, "NodeLost",
                            "Deleted pod: %s, whose node %s has not answered for %lld s", name,
                            node->name, (long long)node->silent_ms / 1000);
    }
    struct control_effect *event = last_effect(fx, before + 1);
    if (event) {
        event->warning = true;
    }
}

void control_add_status(struct control_effects *fx, json_t *status)
{
    (void)add_object(fx, CONTROL_UPDATE_STATUS, status);
}

void control_add_delete_job(struct control_effects *fx)
{
    add(fx, CONTROL_DELETE);
}

void control_add_wake(struct control_effects *fx, int64_t at_unix_ms)
{
    struct control_effect *effect = add(fx, CONTROL_WAKE_AT);
    if (effect) {
        effect->at_unix_ms = at_unix_ms;
    }
}

static char *copy_or_null(struct control_effects *fx, const char *text)
{
    return text ? copy(fx, text) : NULL;
}

void control_add_copy(struct control_effects *fx, const struct control_effect *from)
{
    struct control_effect *effect = add(fx, from->verb);
    if (effect) {
        *effect = *from;
        effect->object = json_incref(from->object);
        effect->name = copy_or_null(fx, from->name);
        effect->uid = copy_or_null(fx, from->uid);
        effect->node = copy_or_null(fx, from->node);
        effect->since = copy_or_null(fx, from->since);
        effect->text = copy_or_null(fx, from->text);
    }
    fx->failed |= effect == NULL;
}

void control_add_all(struct control_effects *fx, struct control_effects *from)
{
    assert(fx != from);
    size_t moved = 0;
    for (; moved < from->count; moved++) {
        struct control_effect *effect = add(fx, from->list[moved].verb);
        if (!effect) {
            break;
        }
        *effect = from->list[moved];
        from->list[moved] = (struct control_effect){0};
    }
    fx->full |= from->full;
    fx->failed |= from->failed;
    control_effects_done(from);
}

void control_effects_done(struct control_effects *fx)
{
    for (size_t i = 0; i < fx->count; i++) {
        json_decref(fx->list[i].object);
        free(fx->list[i].name);
        free(fx->list[i].uid);
        free(fx->list[i].node);
        free(fx->list[i].since);
        free(fx->list[i].text);
    }
    free(fx->list);
    *fx = (struct control_effects){0};
}

/* Makes the event with upstream's reasons and words (pkg/controller.v1/control). */
int control_refused(const struct control_effect *effect, const char *sentence,
                    struct control_effects *ret_effects, struct muster_err *err)
{
    static const char *const kinds[CONTROL_RESOURCES] = {
        "Job", "Pod", "Service", "Claim", "HorizontalPodAutoscaler", "PodGroup", "PodGroup"};
    static const struct {
        const char *does, *doing; /* NULL: not reported */
    } words[] = {
        [CONTROL_CREATE] = {"Create", "creating"},
        [CONTROL_UPDATE] = {"Update", "updating"},
        [CONTROL_DELETE] = {"Delete", "deleting"},
        [CONTROL_UPDATE_STATUS] = {"Update", "updating the status"},
        [CONTROL_WAKE_AT] = {NULL, NULL},
    };
    struct control_effects fx = {0};
    char reason[64];
    if (words[effect->verb].does && !control_is(effect, CONTROL_DELETE, CONTROL_JOB)) {
        bool status = effect->verb == CONTROL_UPDATE_STATUS;
        snprintf(reason, sizeof reason, "Failed%s%s", words[effect->verb].does,
                 status ? "JobStatus" : kinds[effect->resource]);
        control_add_event(&fx, true, reason, "Error %s: %s", words[effect->verb].doing, sentence);
    }
    if (fx.failed) {
        control_effects_done(&fx);
        return muster_fail(err, MUSTER_ENOMEM, "no memory for an event");
    }
    *ret_effects = fx;
    return 0;
}

/* Writes "Created Running=False Succeeded": the conditions, in order; then the counters, if any. */
static void trace_status(const json_t *status, struct buf *out)
{
    size_t index;
    json_t *condition;
    json_array_foreach (doc_at(status, "conditions"), index, condition) {
        const char *value = doc_text(condition, "status", "");
        buf_format(out, " %s", doc_text(condition, "type", ""));
        if (strcmp(value, "True") != 0) {
            buf_format(out, "=%s", value);
        }
    }
    const json_t *counters = doc_at(status, "counters");
    char *text = counters ? doc_print(counters) : NULL;
    if (text) {
        buf_format(out, " %s", text);
    }
    free(text);
}

void control_trace(const struct control_effects *fx, struct buf *out)
{
    for (size_t i = 0; i < fx->count; i++) {
        const struct control_effect *e = &fx->list[i];
        buf_text(out, verbs[e->verb]);
        if (e->verb <= CONTROL_DELETE) {
            buf_text(out, nouns[e->resource]);
        }
        if (e->verb == CONTROL_RECORD_EVENT) {
            buf_format(out, " %s %s: %s", e->warning ? "Warning" : "Normal", e->name, e->text);
        } else if (e->verb == CONTROL_UPDATE_STATUS) {
            trace_status(e->object, out);
        } else if (e->verb == CONTROL_WAKE_AT) {
            buf_format(out, " %lld", (long long)e->at_unix_ms);
        } else if (e->name) {
            buf_format(out, " %s%s", e->name, e->node ? " by force" : "");
        }
        buf_text(out, "\n");
    }
}
