/* See effects.h and control.h. */
#include "control/effects.h"

#include "base/doc.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 16, TEXT_BYTES_MAX = 4096 };

static const char *const words[] = {
#define X(name, word) [CONTROL_##name] = (word),
    CONTROL_EFFECTS(X)
#undef X
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

/* NULL when it does not fit. The last place is kept for WAKE_AT. */
static struct control_effect *add(struct control_effects *fx, enum control_effect_kind kind)
{
    assert(kind < sizeof words / sizeof words[0] && fx->count <= fx->room);
    size_t max = kind == CONTROL_WAKE_AT ? CONTROL_EFFECTS_MAX : CONTROL_EFFECTS_MAX - 1;
    if (fx->count >= max) {
        fx->full = true;
        return NULL;
    }
    if (!make_room(fx)) {
        return NULL;
    }
    struct control_effect *effect = &fx->list[fx->count++];
    *effect = (struct control_effect){.kind = kind};
    return effect;
}

static char *copy(struct control_effects *fx, const char *text)
{
    char *own = strdup(text);
    fx->failed |= own == NULL;
    return own;
}

/* Takes the object; NULL is the caller's lack of memory. */
static struct control_effect *add_object(struct control_effects *fx, enum control_effect_kind kind,
                                         json_t *object)
{
    fx->failed |= object == NULL;
    struct control_effect *effect = add(fx, kind);
    if (effect) {
        effect->object = object;
    } else {
        json_decref(object);
    }
    return effect;
}

void control_add_create(struct control_effects *fx, enum control_effect_kind kind, json_t *object)
{
    struct control_effect *effect = add_object(fx, kind, object);
    if (effect) {
        effect->name = copy(fx, doc_text(object, "metadata.name", ""));
    }
}

void control_add_delete(struct control_effects *fx, enum control_effect_kind kind,
                        const json_t *object)
{
    struct control_effect *effect = add(fx, kind);
    if (effect) {
        effect->name = copy(fx, doc_text(object, "metadata.name", ""));
        effect->uid = copy(fx, doc_text(object, "metadata.uid", ""));
    }
}

void control_add_event(struct control_effects *fx, bool warning, const char *reason,
                       const char *format, ...)
{
    struct control_effect *effect = add(fx, CONTROL_RECORD_EVENT);
    if (!effect) {
        return;
    }
    struct buf text;
    buf_init(&text, TEXT_BYTES_MAX);
    va_list args;
    va_start(args, format);
    buf_vformat(&text, format, args);
    va_end(args);
    effect->warning = warning;
    effect->name = copy(fx, reason);
    effect->text = buf_failed(&text) ? copy(fx, "(message too long)") : buf_steal(&text);
    fx->failed |= effect->text == NULL;
    buf_done(&text);
}

void control_add_write(struct control_effects *fx, enum control_effect_kind kind, json_t *object)
{
    (void)add_object(fx, kind, object);
}

void control_add_delete_job(struct control_effects *fx)
{
    add(fx, CONTROL_DELETE_JOB);
}

void control_add_wake(struct control_effects *fx, int64_t at_unix_ms)
{
    struct control_effect *effect = add(fx, CONTROL_WAKE_AT);
    if (effect) {
        effect->at_unix_ms = at_unix_ms;
    }
}

void control_add_all(struct control_effects *fx, struct control_effects *from)
{
    assert(fx != from);
    size_t moved = 0;
    for (; moved < from->count; moved++) {
        struct control_effect *effect = add(fx, from->list[moved].kind);
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
        free(fx->list[i].text);
    }
    free(fx->list);
    *fx = (struct control_effects){0};
}

/* Upstream's reasons and words (pkg/controller.v1/control). */
int control_refused(const struct control_effect *effect, const char *sentence,
                    struct control_effects *ret_effects, struct muster_err *err)
{
    static const struct {
        const char *reason, *verb;
    } refusals[] = {
        [CONTROL_CREATE_POD] = {"FailedCreatePod", "creating"},
        [CONTROL_DELETE_POD] = {"FailedDeletePod", "deleting"},
        [CONTROL_CREATE_SERVICE] = {"FailedCreateService", "creating"},
        [CONTROL_DELETE_SERVICE] = {"FailedDeleteService", "deleting"},
        [CONTROL_CREATE_CLAIM] = {"FailedCreateClaim", "creating"},
    };
    struct control_effects fx = {0};
    if (effect->kind < sizeof refusals / sizeof refusals[0]) {
        control_add_event(&fx, true, refusals[effect->kind].reason, "Error %s: %s",
                          refusals[effect->kind].verb, sentence);
    }
    if (fx.failed) {
        control_effects_done(&fx);
        return muster_fail(err, MUSTER_ENOMEM, "no memory for an event");
    }
    *ret_effects = fx;
    return 0;
}

static void trace_object(const json_t *object, struct buf *out)
{
    char *text = doc_print(object);
    buf_format(out, " %s", text ? text : "?");
    free(text);
}

/* "Created Running=False Succeeded": the conditions, in order. */
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
}

void control_trace(const struct control_effects *fx, struct buf *out)
{
    for (size_t i = 0; i < fx->count; i++) {
        const struct control_effect *e = &fx->list[i];
        buf_text(out, words[e->kind]);
        if (e->kind == CONTROL_RECORD_EVENT) {
            buf_format(out, " %s %s: %s", e->warning ? "Warning" : "Normal", e->name, e->text);
        } else if (e->kind == CONTROL_UPDATE_STATUS) {
            trace_status(e->object, out);
        } else if (e->kind == CONTROL_ANNOTATE) {
            trace_object(e->object, out);
        } else if (e->kind == CONTROL_WAKE_AT) {
            buf_format(out, " %lld", (long long)e->at_unix_ms);
        } else if (e->name) {
            buf_format(out, " %s", e->name);
        }
        buf_text(out, "\n");
    }
}
