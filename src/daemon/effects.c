/* See effects.h. */
#include "daemon/effects.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "daemon/object/events.h"
#include "daemon/object/jobs.h"

#include <assert.h>
#include <string.h>

struct step {
    struct store *store;
    json_t *job; /* as it is now: each write of ours gives the next version; one reference */
    int64_t now_unix_ms;
    int64_t wake_unix_ms;
};

static const char *const component = "pytorchjob-controller";

static const char *const plurals[CONTROL_RESOURCES] = {
    [CONTROL_JOB] = "pytorchjobs",
    [CONTROL_POD] = "pods",
    [CONTROL_SERVICE] = "services",
    [CONTROL_CLAIM] = "persistentvolumeclaims",
};

static int remove_owned(struct step *s, const struct control_effect *e, struct muster_err *err)
{
    const struct store_key key = {plurals[e->resource], doc_text(s->job, "metadata.namespace", ""),
                                  e->name};
    const struct store_delete_options options = {
        .uid = e->uid,
        .grace_s = STORE_GRACE_DEFAULT,
    };
    int r = store_delete(s->store, key, &options, NULL, err);
    return r == MUSTER_ENOENT ? 0 : r;
}

static int write_job(struct step *s, const json_t *changed, enum store_part part,
                     struct muster_err *err)
{
    json_t *now = NULL;
    int r = store_update(s->store, "pytorchjobs", changed, part, &now, err);
    if (r == 0) {
        json_decref(s->job);
        s->job = now;
    }
    return r;
}

static int update_status(struct step *s, const struct control_effect *e, struct muster_err *err)
{
    muster_auto(doc) json_t *changed = json_copy(s->job);
    if (!changed || json_object_set(changed, "status", e->object) != 0) {
        return err_no_memory(err);
    }
    return write_job(s, changed, STORE_STATUS_ONLY, err);
}

static int annotate(struct step *s, const struct control_effect *e, struct muster_err *err)
{
    muster_auto(doc) json_t *changed = jobs_annotated(s->job, e->object);
    return changed ? write_job(s, changed, STORE_BUT_STATUS, err) : err_no_memory(err);
}

static int delete_job(struct step *s, struct muster_err *err)
{
    const struct store_key key = {"pytorchjobs", doc_text(s->job, "metadata.namespace", ""),
                                  doc_text(s->job, "metadata.name", "")};
    const struct store_delete_options options = {
        .uid = doc_text(s->job, "metadata.uid", NULL),
        .version = doc_text(s->job, "metadata.resourceVersion", NULL),
        .grace_s = STORE_GRACE_DEFAULT,
    };
    return store_delete(s->store, key, &options, NULL, err);
}

static int record(struct step *s, const struct control_effect *e, struct muster_err *err)
{
    const struct event_note note = {.about = s->job,
                                    .component = component,
                                    .warning = e->warning,
                                    .reason = e->name,
                                    .message = e->text,
                                    .now_unix_ms = s->now_unix_ms};
    return event_record(s->store, &note, err);
}

static int apply_one(struct step *s, const struct control_effect *e, struct muster_err *err)
{
    switch (e->verb) {
    case CONTROL_CREATE: return store_create(s->store, plurals[e->resource], e->object, NULL, err);
    case CONTROL_DELETE:
        return e->resource == CONTROL_JOB ? delete_job(s, err) : remove_owned(s, e, err);
    case CONTROL_RECORD_EVENT: return record(s, e, err);
    case CONTROL_UPDATE_STATUS: return update_status(s, e, err);
    case CONTROL_ANNOTATE: return annotate(s, e, err);
    case CONTROL_WAKE_AT: s->wake_unix_ms = e->at_unix_ms; return 0;
    }
    assert(!"unreachable");
    return MUSTER_EINTERNAL;
}

static void tell_refusal(struct step *s, const struct control_effect *effect, const char *sentence)
{
    struct control_effects told;
    if (control_refused(effect, sentence, &told, NULL) < 0) {
        return;
    }
    for (size_t i = 0; i < told.count; i++) {
        (void)record(s, &told.list[i], NULL); /* the refusal itself is what the caller hears of */
    }
    control_effects_done(&told);
}

static int apply_all(struct step *s, const struct control_effects *effects, struct muster_err *err)
{
    for (size_t i = 0; i < effects->count; i++) {
        struct muster_err why = MUSTER_ERR_INIT;
        int r = apply_one(s, &effects->list[i], &why);
        if (r < 0) {
            tell_refusal(s, &effects->list[i], why.text);
            return muster_fail(err, r, "%s", why.text);
        }
    }
    return 0;
}

int effects_apply(struct store *store, const struct control_view *view,
                  const struct control_effects *effects, int64_t *ret_wake_unix_ms,
                  struct muster_err *err)
{
    if (effects->count == 0) {
        return 0;
    }
    struct step s = {.store = store,
                     .job = json_incref(view->job),
                     .now_unix_ms = view->now_unix_ms,
                     .wake_unix_ms = INT64_MAX};
    int r = store_begin(store, err);
    if (r == 0) {
        r = apply_all(&s, effects, err);
        int committed = store_commit(store, r < 0 ? NULL : err);
        r = r < 0 ? r : committed;
    }
    if (r == 0 && s.wake_unix_ms != INT64_MAX) {
        *ret_wake_unix_ms = s.wake_unix_ms;
    }
    json_decref(s.job);
    return r;
}
