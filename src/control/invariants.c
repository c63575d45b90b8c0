/* Checks the invariants of a step against the view that it was made from. See control.h. */
#include "base/doc.h"
#include "control/control.h"
#include "control/observe.h"
#include "control/status/attempt.h"
#include "control/status/condition.h"
#include "job/annotations.h"

#include <stdlib.h>
#include <string.h>

typedef const char *invariant_fn(const struct control_view *view, const struct control_effects *fx);

static size_t count_of(const struct control_effects *fx, enum control_verb verb,
                       enum control_resource resource)
{
    size_t count = 0;
    for (size_t i = 0; i < fx->count; i++) {
        count += control_is(&fx->list[i], verb, resource);
    }
    return count;
}

/* Looks only at the job's own pods: a name of another's pod is refused by the API. */
static bool own_pod_named(const struct control_view *view, const char *name)
{
    const char *uid = doc_text(view->job, "metadata.uid", "");
    size_t index;
    json_t *each;
    json_array_foreach (view->pods, index, each) {
        if (control_owns(uid, each) && strcmp(doc_text(each, "metadata.name", ""), name) == 0) {
            return true;
        }
    }
    return false;
}

static const char *one_pod_per_index(const struct control_view *view,
                                     const struct control_effects *fx)
{
    for (size_t i = 0; i < fx->count; i++) {
        const struct control_effect *e = &fx->list[i];
        if (!control_is(e, CONTROL_CREATE, CONTROL_POD)) {
            continue;
        }
        if (own_pod_named(view, e->name)) {
            return "creates a pod that is still there";
        }
        for (size_t j = 0; j < i; j++) {
            if (control_is(&fx->list[j], CONTROL_CREATE, CONTROL_POD) &&
                strcmp(fx->list[j].name, e->name) == 0) {
                return "creates a pod twice";
            }
        }
    }
    return NULL;
}

static const char *deletes_what_is_there(const struct control_view *view,
                                         const struct control_effects *fx)
{
    for (size_t i = 0; i < fx->count; i++) {
        const struct control_effect *e = &fx->list[i];
        if (control_is(e, CONTROL_DELETE, CONTROL_POD) && !own_pod_named(view, e->name)) {
            return "deletes a pod that is not the job's";
        }
        if (control_is(e, CONTROL_DELETE, CONTROL_SERVICE) &&
            !doc_find(view->services, "metadata.name", e->name)) {
            return "deletes a service that is not there";
        }
    }
    return NULL;
}

/* Every prefix of the effects must be safe: first the status with the counters, then deletions,
 * then the rest. Events may be anywhere. */
static const char *in_safe_order(const struct control_view *view, const struct control_effects *fx)
{
    static const int order[] = {
        [CONTROL_UPDATE_STATUS] = 1, [CONTROL_DELETE] = 2,  [CONTROL_UPDATE] = 3,
        [CONTROL_CREATE] = 3,        [CONTROL_WAKE_AT] = 4, [CONTROL_RECORD_EVENT] = -1,
    };
    (void)view;
    int last = 0;
    for (size_t i = 0; i < fx->count; i++) {
        bool ends = control_is(&fx->list[i], CONTROL_DELETE, CONTROL_JOB);
        int here = ends ? 3 : order[fx->list[i].verb];
        if (here >= 0 && here < last) {
            return "effects are in an order that a crash could make wrong";
        }
        last = here >= 0 ? here : last;
    }
    return NULL;
}

static const char *once_each(const struct control_view *view, const struct control_effects *fx)
{
    (void)view;
    static const enum control_verb once[] = {CONTROL_UPDATE_STATUS, CONTROL_DELETE,
                                             CONTROL_WAKE_AT};
    for (size_t i = 0; i < sizeof once / sizeof once[0]; i++) {
        if (count_of(fx, once[i], CONTROL_JOB) > 1) {
            return "writes the job, or wakes, more than once";
        }
    }
    return fx->count > CONTROL_EFFECTS_MAX ? "has too many effects" : NULL;
}

static const char *wakes_in_the_future(const struct control_view *view,
                                       const struct control_effects *fx)
{
    for (size_t i = 0; i < fx->count; i++) {
        if (fx->list[i].verb == CONTROL_WAKE_AT && !fx->full &&
            fx->list[i].at_unix_ms <= view->now_unix_ms) {
            return "wakes in the past";
        }
    }
    return NULL;
}

static const json_t *status_after(const struct control_view *view, const struct control_effects *fx)
{
    for (size_t i = 0; i < fx->count; i++) {
        if (fx->list[i].verb == CONTROL_UPDATE_STATUS) {
            return fx->list[i].object;
        }
    }
    return doc_at(view->job, "status");
}

static bool has_both(const json_t *status, const char *one, const char *other)
{
    return control_has(status, one) && control_has(status, other);
}

/* A contradiction that was in the status before the step is not the step's fault. */
static const char *consistent_conditions(const struct control_view *view,
                                         const struct control_effects *fx)
{
    const json_t *old = doc_at(view->job, "status");
    const json_t *status = status_after(view, fx);
    bool over = control_has(status, "Failed") || control_has(status, "Succeeded");
    if (status == old) {
        return NULL; /* this step has not written it */
    }
    if (has_both(status, "Failed", "Succeeded") && !control_has(old, "Succeeded")) {
        return "has both failed and succeeded";
    }
    if (has_both(status, "Running", "Restarting") && !has_both(old, "Running", "Restarting")) {
        return "runs and restarts at once";
    }
    return over && !doc_at(status, "completionTime") ? "is over without completionTime" : NULL;
}

static const char *nothing_made_when_over(const struct control_view *view,
                                          const struct control_effects *fx)
{
    const json_t *status = status_after(view, fx);
    bool idle = control_has(status, "Failed") || control_has(status, "Succeeded") ||
                control_has(status, "Suspended");
    bool makes =
        count_of(fx, CONTROL_CREATE, CONTROL_POD) + count_of(fx, CONTROL_CREATE, CONTROL_SERVICE) >
        0;
    return idle && makes ? "makes objects for a job that is over or suspended" : NULL;
}

static int64_t sum_of(const json_t *entries, const char *field, int64_t fallback)
{
    int64_t sum = 0;
    const char *role;
    json_t *entry;
    json_object_foreach ((json_t *)entries, role, entry) {
        sum += doc_int(entry, field, fallback);
    }
    return sum;
}

/* A status that was Succeeded before the step, or that another program wrote, is not judged. */
static const char *succeeds_by_its_policy(const struct control_view *view,
                                          const struct control_effects *fx)
{
    const json_t *old = doc_at(view->job, "status");
    const json_t *status = status_after(view, fx);
    const char *policy = json_string_value(
        json_object_get(doc_at(view->job, "metadata.annotations"), JOB_ANNOTATION_SUCCESS_POLICY));
    if (!policy || strcmp(policy, "AllRanks") != 0 || !control_has(status, "Succeeded") ||
        control_has(old, "Succeeded")) {
        return NULL;
    }
    int64_t wanted = sum_of(doc_at(view->job, "spec.pytorchReplicaSpecs"), "replicas", 1);
    return sum_of(doc_at(status, "replicaStatuses"), "succeeded", 0) < wanted
               ? "has succeeded under AllRanks before all ranks have"
               : NULL;
}

/* Otherwise ranks of two attempts could meet. */
static const char *one_attempt_at_a_time(const struct control_view *view,
                                         const struct control_effects *fx)
{
    const char *uid = doc_text(view->job, "metadata.uid", "");
    size_t index;
    json_t *each;
    for (size_t i = 0; i < fx->count; i++) {
        const struct control_effect *e = &fx->list[i];
        int64_t made =
            control_is(e, CONTROL_CREATE, CONTROL_POD) ? control_attempt_of_pod(e->object) : 0;
        json_array_foreach (view->pods, index, each) {
            if (control_owns(uid, each) && control_attempt_of_pod(each) < made) {
                return "starts a rank while one of an earlier attempt is there";
            }
        }
    }
    return NULL;
}

/* Each restart is counted once, and there are never more than allowed. */
static const char *restarts_within_bounds(const struct control_view *view,
                                          const struct control_effects *fx)
{
    struct job job;
    if (job_read(view->job, &job, NULL) != 0) {
        return NULL;
    }
    int64_t before = control_attempt_read(&job).number;
    int64_t most = job.max_restarts;
    job_done(&job);
    const char *field = "counters.jobRestarts";
    int64_t stored = doc_int(doc_at(view->job, "status"), field, before);
    int64_t after = doc_int(status_after(view, fx), field, before);
    return after != stored && (after != before + 1 || before >= most)
               ? "restarts the job more often than is allowed"
               : NULL;
}

const char *control_check_invariants(const struct control_view *view,
                                     const struct control_effects *fx)
{
    static invariant_fn *const invariants[] = {
        one_pod_per_index,      deletes_what_is_there,
        in_safe_order,          once_each,
        wakes_in_the_future,    consistent_conditions,
        nothing_made_when_over, succeeds_by_its_policy,
        one_attempt_at_a_time,  restarts_within_bounds,
    };
    for (size_t i = 0; i < sizeof invariants / sizeof invariants[0]; i++) {
        const char *broken = invariants[i](view, fx);
        if (broken) {
            return broken;
        }
    }
    return NULL;
}
