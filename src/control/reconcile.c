/* One step: observe, count, apply the rules, then say what must be done, in an order in which every
 * prefix is safe: the status with what was counted, then deletions, then creations. See control.h.
 */
#include "base/doc.h"
#include "base/err.h"
#include "control/actions.h"
#include "control/effects.h"
#include "control/failure.h"
#include "control/restart.h"
#include "control/status/condition.h"
#include "job/annotations.h"

#include <string.h>

#define STALLED "Stalled" /* the condition of a job that cannot be read */

enum { NAME_BYTES_MAX = 253 };

/* "" names no controller, so it does not name us (upstream: TestManagedByExternalController). */
bool control_manages(const json_t *job)
{
    const char *manager = doc_text(job, "spec.runPolicy.managedBy", NULL);
    return !manager || strcmp(manager, "kubeflow.org/training-operator") == 0;
}

static const struct control_member *find_uid(const struct control_observed *o, const char *uid)
{
    for (size_t i = 0; i < o->pod_count; i++) {
        if (strcmp(o->pods[i].uid, uid) == 0) {
            return &o->pods[i];
        }
    }
    return NULL;
}

/* Adds upstream's events for a pod that fails. Each failure is reported once, because only new
 * failures get here. */
static void tell_failure(struct control_step *s, const struct control_member *pod)
{
    struct control_failure f = control_pod_failure(pod->object, true);
    bool by_code = s->o->job->replica[pod->role].restart_policy == JOB_EXIT_CODE;
    if (!f.found) {
        f = control_pod_failure(pod->object, false);
    }
    if (by_code && pod->phase == CONTROL_FAILED_PHASE && f.exit_code >= 0) {
        control_add_event(&s->events, false, "ExitedWithCode", "Pod: %s.%s exited with code %d",
                          s->o->job->namespace, pod->name, f.exit_code);
    } else if (f.found && *f.container) {
        control_add_event(&s->events, true, *f.reason ? f.reason : "Error",
                          "Error pod %s container %s exitCode: %d terminated message: %s",
                          pod->name, f.container, f.exit_code, f.message);
    } else if (f.found) {
        control_add_event(&s->events, true, *f.reason ? f.reason : "Failed",
                          "Error pod %s condition message: %s", pod->name, f.message);
    }
}

static void tell_failures(struct control_step *s)
{
    size_t index;
    json_t *uid;
    json_array_foreach (s->counters->new_failures, index, uid) {
        const struct control_member *pod = find_uid(s->o, json_string_value(uid));
        if (pod) {
            tell_failure(s, pod);
        }
    }
}

static void count_from_now(struct control_step *s, const char *field)
{
    if (control_counters_set(s->counters, field, json_integer(s->now_unix_ms)) < 0) {
        s->r = MUSTER_ENOMEM;
    }
}

/* Adds UPDATE_STATUS, if the status has changed, and the events that are due when it is written.
 * Milliseconds are kept if a deadline or time to live counts from them. */
static void write_job(struct control_step *s, struct control_effects *fx)
{
    const struct job *job = s->o->job;
    bool fraction = s->now_unix_ms % 1000 != 0;
    if (fraction && s->started && job->active_deadline_s != JOB_UNSET) {
        count_from_now(s, "startTimeMs");
    }
    if (fraction && s->ended && job->ttl_s != JOB_UNSET) {
        count_from_now(s, "completionTimeMs");
    }
    if (s->counters->changed && json_object_set(s->status, "counters", s->counters->doc) < 0) {
        s->r = MUSTER_ENOMEM;
    }
    if (!json_equal(doc_at(job->object, "status"), s->status)) {
        control_add_status(fx, json_incref(s->status));
    }
    control_add_all(fx, &s->events);
}

static int run_step(const struct control_observed *o, struct control_counters *counters,
                    struct control_effects *fx)
{
    const json_t *old = doc_at(o->job->object, "status");
    struct control_step s = {
        .o = o,
        .counters = counters,
        .now_unix_ms = o->view->now_unix_ms,
        .status = json_is_object(old) ? json_deep_copy(old) : json_object(),
    };
    if (!s.status) {
        return MUSTER_ENOMEM;
    }
    control_unset(s.status, STALLED);
    tell_failures(&s);
    enum control_state state = control_apply_rules(&s);
    if (control_is_active(state) && control_restarts(&s)) {
        control_restart(&s);
    }
    write_job(&s, fx);
    control_act(&s, state, fx);
    int r = s.r != 0 || fx->failed || s.events.failed ? MUSTER_ENOMEM : 0;
    control_effects_done(&s.events);
    json_decref(s.status);
    return r;
}

static int reconcile(const struct job *job, const struct control_view *view,
                     struct control_effects *fx, struct muster_err *err)
{
    struct control_observed o;
    struct control_counters counters;
    int r = control_observe(job, view, &o, err);
    if (r != 0) {
        return r;
    }
    r = control_count(&o, &counters, err);
    if (r == 0) {
        r = run_step(&o, &counters, fx);
        control_counters_done(&counters);
    }
    control_observed_done(&o);
    return r < 0 && (!err || err->code == 0) ? muster_fail(err, r, "no memory to reconcile a job")
                                             : r;
}

int control_reconcile(const struct control_view *view, struct control_effects *ret_effects,
                      struct muster_err *err)
{
    struct job job;
    struct control_effects fx = {0};
    int r = job_read(view->job, &job, err);
    if (r != 0) {
        return r;
    }
    if (strlen(job.name) > NAME_BYTES_MAX) {
        job_done(&job);
        return muster_fail(err, MUSTER_EDATA, "metadata.name: must be no longer than %d bytes",
                           NAME_BYTES_MAX);
    }
    /* the pods of a job that is being deleted are deleted with it (owner references) */
    if (control_manages(view->job) && !doc_at(view->job, "metadata.deletionTimestamp")) {
        r = reconcile(&job, view, &fx, err);
    }
    job_done(&job);
    if (r != 0) {
        control_effects_done(&fx);
        return r;
    }
    *ret_effects = fx;
    return 0;
}

static int stall(json_t *status, const struct control_view *view, const char *sentence,
                 struct control_effects *fx)
{
    const char *reason = "PyTorchJobInvalid";
    const struct control_condition condition = {STALLED, true, reason, sentence};
    int r = control_set(status, &condition, view->now_unix_ms);
    if (r == 1) {
        control_add_status(fx, json_incref(status));
        control_add_event(fx, true, reason, "The job cannot be read: %s", sentence);
    }
    return r < 0 || fx->failed ? MUSTER_ENOMEM : 0;
}

int control_stalled(const struct control_view *view, const char *sentence,
                    struct control_effects *ret_effects, struct muster_err *err)
{
    const json_t *old = doc_at(view->job, "status");
    struct control_effects fx = {0};
    bool ours = control_manages(view->job) && !job_is_finished(view->job) &&
                !doc_at(view->job, "metadata.deletionTimestamp");
    json_t *status = json_is_object(old) ? json_deep_copy(old) : json_object();
    int r = !status ? MUSTER_ENOMEM : ours ? stall(status, view, sentence, &fx) : 0;
    json_decref(status);
    if (r < 0) {
        control_effects_done(&fx);
        return err_no_memory(err);
    }
    *ret_effects = fx;
    return 0;
}
