/* See condition.h. */
#include "control/status/condition.h"

#include "base/build.h"
#include "base/doc.h"
#include "base/time/timestamp.h"

#include <assert.h>
#include <string.h>

static bool is(const json_t *condition, const char *type)
{
    return strcmp(doc_text(condition, "type", ""), type) == 0;
}

static bool same(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static json_t *find(const json_t *status, const char *type)
{
    size_t index;
    json_t *condition;
    json_array_foreach (doc_at(status, "conditions"), index, condition) {
        if (is(condition, type)) {
            return condition;
        }
    }
    return NULL;
}

bool control_has(const json_t *status, const char *type)
{
    return same(doc_text(find(status, type), "status", ""), "True");
}

/* Whether a new condition of type `type` removes an old one from the list. */
static bool replaces(const char *type, const json_t *old)
{
    return is(old, type) || (same(type, "Restarting") && is(old, "Running")) ||
           (same(type, "Running") && is(old, "Restarting"));
}

/* Returns the old condition as it is kept. A finished job neither runs nor restarts. (Upstream
 * leaves Restarting True, and does not change the time.) Reason and message stay: they describe the
 * last time it ran. */
static json_t *kept(struct build *b, const char *type, json_t *old, const char *now)
{
    bool ends = same(type, "Failed") || same(type, "Succeeded");
    bool went = is(old, "Running") || is(old, "Restarting");
    json_t *copy = build_value(b, json_deep_copy(old));
    if (ends && went && same(doc_text(old, "status", ""), "True")) {
        build_text(b, copy, "status", "False");
        build_text(b, copy, "lastUpdateTime", now);
        build_text(b, copy, "lastTransitionTime", now);
    }
    return copy;
}

static json_t *made(struct build *b, const struct control_condition *c, const json_t *old,
                    const char *now)
{
    const char *value = c->value ? "True" : "False";
    bool turned = !same(doc_text(old, "status", ""), value);
    json_t *condition = build_value(b, json_object());
    build_text(b, condition, "type", c->type);
    build_text(b, condition, "status", value);
    build_text(b, condition, "reason", c->reason);
    build_text(b, condition, "message", c->message);
    build_text(b, condition, "lastUpdateTime", now);
    build_text(b, condition, "lastTransitionTime",
               turned ? now : doc_text(old, "lastTransitionTime", now));
    return condition;
}

int control_set(json_t *status, const struct control_condition *c, int64_t now_unix_ms)
{
    assert(json_is_object(status) && *c->type && *c->reason && c->message);
    const json_t *old = find(status, c->type);
    const char *value = c->value ? "True" : "False";
    if (control_has(status, "Failed") || (old && same(doc_text(old, "status", ""), value) &&
                                          same(doc_text(old, "reason", ""), c->reason))) {
        return 0;
    }
    struct build b = {0};
    char now[TIMESTAMP_BYTES];
    timestamp_seconds(now_unix_ms, now);
    json_t *list = build_value(&b, json_array());
    size_t index;
    json_t *each;
    json_array_foreach (doc_at(status, "conditions"), index, each) {
        if (!replaces(c->type, each)) {
            build_add(&b, list, kept(&b, c->type, each, now));
        }
    }
    build_add(&b, list, made(&b, c, old, now));
    list = build_end(&b, list);
    return list && json_object_set_new(status, "conditions", list) == 0 ? 1 : MUSTER_ENOMEM;
}

void control_unset(json_t *status, const char *type)
{
    json_t *list = json_object_get(status, "conditions");
    for (size_t i = json_array_size(list); i > 0; i--) {
        if (is(json_array_get(list, i - 1), type)) {
            json_array_remove(list, i - 1);
        }
    }
}
