/* See world.h. */
#include "world.h"

#include "base/doc.h"
#include "base/testing/test.h"
#include "control/fixture.h"

enum { ROUNDS_MAX = 200 };

#define EPOCH 1767225600000 /* 2026-01-01T00:00:00Z */

void sim_world_init(struct sim_world *w, json_t *job, const json_t *script)
{
    *w = (struct sim_world){
        .start_unix_ms = EPOCH, .now_unix_ms = EPOCH, .control_wake_unix_ms = INT64_MAX};
    sim_store_init(&w->store, job);
    sim_kubelet_init(&w->kubelet, &w->store, script);
}

void sim_world_done(struct sim_world *w)
{
    sim_kubelet_done(&w->kubelet);
    sim_store_done(&w->store);
}

static void note(struct sim_world *w, const char *broken)
{
    w->broken = w->broken ? w->broken : broken;
}

size_t sim_world_reconcile(struct sim_world *w, struct sim_view *view, size_t stop)
{
    struct control_effects fx;
    struct muster_err err = MUSTER_ERR_INIT;
    view->view.now_unix_ms = w->now_unix_ms;
    if (control_reconcile(&view->view, &fx, &err) != 0) {
        fail_msg("%s", err.text);
    }
    note(w, control_check_invariants(&view->view, &fx));
    note(w, differs_on_projections(&view->view, &fx));
    w->control_wake_unix_ms = INT64_MAX;
    size_t done = 0;
    for (; done < fx.count && done < stop; done++) {
        const struct control_effect *e = &fx.list[done];
        if (e->verb == CONTROL_WAKE_AT) {
            w->control_wake_unix_ms = e->at_unix_ms;
        }
        if (sim_store_apply(&w->store, e, &view->job_version, w->now_unix_ms) < 0) {
            break;
        }
    }
    control_effects_done(&fx);
    return done;
}

static bool run_controller(struct sim_world *w)
{
    bool due = w->store.version != w->seen_version || w->control_wake_unix_ms <= w->now_unix_ms;
    if (!w->store.job || !due) {
        return false;
    }
    struct sim_view view;
    w->seen_version = w->store.version;
    sim_store_look(&w->store, w->now_unix_ms, &view);
    sim_world_reconcile(w, &view, SIZE_MAX);
    sim_view_done(&view);
    return true;
}

/* When the job is deleted, its pods are deleted too, as owner references require. */
static void collect_garbage(struct sim_world *w)
{
    for (size_t i = 0; !w->store.job && i < json_array_size(w->store.pods); i++) {
        const json_t *pod = json_array_get(w->store.pods, i);
        sim_store_delete_pod(&w->store, doc_text(pod, "metadata.name", ""), w->now_unix_ms);
    }
}

void sim_world_settle(struct sim_world *w)
{
    for (int round = 0; round < ROUNDS_MAX; round++) {
        collect_garbage(w);
        bool any = sim_kubelet_run(&w->kubelet, w->now_unix_ms);
        any |= run_controller(w);
        note(w, w->kubelet.broken);
        if (!any || w->broken) {
            return;
        }
    }
    note(w, "never comes to rest at one instant");
}

bool sim_world_advance(struct sim_world *w, int64_t until_unix_ms)
{
    int64_t next = sim_kubelet_next(&w->kubelet);
    next = w->control_wake_unix_ms < next ? w->control_wake_unix_ms : next;
    if (next > until_unix_ms) {
        w->now_unix_ms = until_unix_ms;
        return false;
    }
    w->now_unix_ms = next > w->now_unix_ms ? next : w->now_unix_ms + 1;
    return true;
}

bool sim_world_job_is(const struct sim_world *w, const char *condition)
{
    size_t index;
    json_t *each;
    json_array_foreach (doc_at(w->store.job, "status.conditions"), index, each) {
        if (strcmp(doc_text(each, "type", ""), condition) == 0) {
            return strcmp(doc_text(each, "status", ""), "True") == 0;
        }
    }
    return false;
}

const char *sim_world_state(const struct sim_world *w)
{
    const json_t *list = doc_at(w->store.job, "status.conditions");
    if (!w->store.job) {
        return "gone";
    }
    return doc_text(json_array_get(list, json_array_size(list) ? json_array_size(list) - 1 : 0),
                    "type", "");
}
