/* See actions.h. */
#include "control/actions.h"

#include "base/doc.h"
#include "base/time/timestamp.h"
#include "control/broken.h"
#include "control/companions.h"
#include "control/effects.h"
#include "control/objects.h"
#include "control/projection/gpu.h"
#include "control/restart.h"
#include "job/annotations.h"

#include <assert.h>
#include <string.h>

/* How long ranks that still run after the job's end may keep their GPUs (#1982). */
enum { GPU_GRACE_MS = 30000 };

struct actor {
    const struct control_step *step;
    const struct control_observed *o;
    struct control_effects *fx;
    int64_t wake_unix_ms;
};

typedef bool pick_fn(const struct control_member *pod);

static void wake(struct actor *a, int64_t at_unix_ms)
{
    if (at_unix_ms < a->wake_unix_ms) {
        a->wake_unix_ms = at_unix_ms;
    }
}

static void delete_pod(struct actor *a, const struct control_member *pod)
{
    control_add_delete(a->fx, CONTROL_POD, pod->object);
    control_add_success(a->fx, "SuccessfulDeletePod", "Deleted pod: %s", pod->name);
}

static void delete_service(struct actor *a, const struct control_member *service)
{
    control_add_delete(a->fx, CONTROL_SERVICE, service->object);
    control_add_success(a->fx, "SuccessfulDeleteService", "Deleted service: %s", service->name);
}

static bool any_pod(const struct control_member *pod)
{
    (void)pod;
    return true;
}

/* The pod's phase in the cluster counts: after the rank has ended, a sidecar that was injected may
 * still run. */
static bool unfinished(const struct control_member *pod)
{
    return pod->cluster_phase == CONTROL_RUNNING || pod->cluster_phase == CONTROL_PENDING;
}

static bool holds_gpu(const struct control_member *pod)
{
    size_t index;
    json_t *container;
    json_array_foreach (doc_at(pod->object, "spec.containers"), index, container) {
        if (control_holds_gpu(container)) {
            return true;
        }
    }
    return false;
}

static bool unfinished_with_gpu(const struct control_member *pod)
{
    return unfinished(pod) && holds_gpu(pod);
}

static bool serves(const struct control_member *service, const struct control_member *pod)
{
    return service->known ? pod->known && pod->role == service->role && pod->index == service->index
                          : strcmp(pod->name, service->name) == 0;
}

/* Whether the pod of that Service stays when the picked pods are deleted. */
static bool keeps_pod(const struct actor *a, const struct control_member *service, pick_fn *pick)
{
    for (size_t i = 0; i < a->o->pod_count; i++) {
        if (serves(service, &a->o->pods[i])) {
            return !pick(&a->o->pods[i]);
        }
    }
    return false;
}

/* Deletes the picked pods, and each Service that is left without a pod. */
static void delete_picked(struct actor *a, pick_fn *pick)
{
    for (size_t i = 0; i < a->o->pod_count; i++) {
        if (pick(&a->o->pods[i]) && !a->o->pods[i].terminating) {
            delete_pod(a, &a->o->pods[i]);
        }
    }
    for (size_t i = 0; i < a->o->service_count; i++) {
        const struct control_member *service = &a->o->services[i];
        if (!service->terminating && !keeps_pod(a, service, pick)) {
            delete_service(a, service);
        }
    }
}

static const char *note_of(const struct actor *a, const char *key)
{
    const json_t *notes = doc_at(a->o->job->object, "metadata.annotations");
    return json_string_value(json_object_get(notes, key));
}

static bool any_holds_gpu(const struct actor *a)
{
    const char *mode = note_of(a, JOB_ANNOTATION_GPU);
    if (mode && strcmp(mode, "none") == 0) {
        return false; /* the requests were lifted */
    }
    for (size_t i = 0; i < a->o->pod_count; i++) {
        if (unfinished_with_gpu(&a->o->pods[i]) && !a->o->pods[i].terminating) {
            return true;
        }
    }
    return false;
}

/* Under cleanPodPolicy None running pods stay, but no pod may keep GPUs for a job that is over. */
static void free_gpus(struct actor *a, int64_t ended_unix_ms)
{
    if (!any_holds_gpu(a)) {
        return;
    }
    if (a->step->now_unix_ms >= ended_unix_ms + GPU_GRACE_MS) {
        delete_picked(a, unfinished_with_gpu);
        return;
    }
    wake(a, ended_unix_ms + GPU_GRACE_MS);
    if (a->step->ended) { /* the job ended in this step */
        control_add_event(a->fx, false, "GPUGracePeriod",
                          "job %s is over, and pods of it that still run hold GPUs: they are ended "
                          "in %d s",
                          a->o->job->name, GPU_GRACE_MS / 1000);
    }
}

static void clean_up(struct actor *a, int64_t ended_unix_ms)
{
    enum job_clean_policy policy = a->o->job->clean_policy;
    if (policy == JOB_CLEAN_ALL) {
        delete_picked(a, any_pod);
    } else if (policy == JOB_CLEAN_RUNNING || note_of(a, JOB_ANNOTATION_STOP)) {
        delete_picked(a, unfinished);
    } else if (a->o->view->target == CONTROL_TARGET_MACHINE) {
        free_gpus(a, ended_unix_ms); /* a cluster has quotas of its own (docs/differences.md) */
    }
}

static void finish(struct actor *a)
{
    const struct job *job = a->o->job;
    int64_t now = a->step->now_unix_ms;
    int64_t ended = control_ended_at(a->step);
    ended = ended == TIMESTAMP_NONE || ended > now ? now : ended;
    assert(ended <= now);
    bool expires = job->ttl_s != JOB_UNSET && job->ttl_s < INT32_MAX;
    int64_t expiry = ended + job->ttl_s * 1000;
    if (expires && now >= expiry) {
        control_add_delete_job(a->fx);
        control_add_success(a->fx, "SuccessfulDeletePod", "Deleted job: %s", job->name);
        return;
    }
    if (expires) {
        wake(a, expiry);
    }
    clean_up(a, ended);
    control_gang_drop(a->step, a->fx);
}

static bool is_lost(const struct actor *a, const struct control_member *pod)
{
    const struct control_node *node;
    return control_lost_in_ms(a->o->view, pod, &node) == 0;
}

/* Deletes also pods that are already being deleted: nothing else would end them. */
static void delete_lost(struct actor *a)
{
    for (size_t i = 0; i < a->o->pod_count; i++) {
        const struct control_node *node;
        int64_t in_ms = control_lost_in_ms(a->o->view, &a->o->pods[i], &node);
        if (in_ms == 0) {
            control_add_delete_lost(a->fx, a->o->pods[i].object, node);
        } else if (in_ms < INT64_MAX) {
            wake(a, a->step->now_unix_ms + in_ms);
        }
    }
}

/* Whether to delete the pod: it is surplus after scale-down, its name is not one that the job
 * gives, or it has failed and will be replaced. */
static bool must_go(const struct actor *a, const struct control_member *pod)
{
    bool is_made_again = pod->phase == CONTROL_FAILED_PHASE &&
                         !control_is_permanent(a->o->job, pod) &&
                         !(pod->role == JOB_WORKER && control_is_trained(a->o));
    return !pod->terminating && !is_lost(a, pod) && (!pod->in_range || is_made_again);
}

static void delete_surplus(struct actor *a)
{
    for (size_t i = 0; i < a->o->pod_count; i++) {
        if (must_go(a, &a->o->pods[i])) {
            delete_pod(a, &a->o->pods[i]);
        }
    }
    for (size_t i = 0; i < a->o->service_count; i++) {
        if (!a->o->services[i].in_range && !a->o->services[i].terminating) {
            delete_service(a, &a->o->services[i]);
        }
    }
}

static bool has_claim(const struct actor *a, const char *name)
{
    return doc_find(a->o->view->claims, "metadata.name", name) != NULL;
}

static void create_claims(struct actor *a, enum job_role role, int index, const char *pod_name)
{
    size_t at;
    json_t *each;
    json_array_foreach (a->o->job->replica[role].claim_templates, at, each) {
        char name[2 * CONTROL_NAME_BYTES];
        if (!has_claim(a, control_claim_name(each, pod_name, name))) {
            control_add_create(a->fx, CONTROL_CLAIM,
                               control_make_claim(a->o->job, role, index, each));
        }
    }
}

static void create_pod(struct actor *a, enum job_role role, int index)
{
    char name[CONTROL_NAME_BYTES];
    control_pod_name(a->o->job, role, index, name);
    create_claims(a, role, index, name);
    control_add_create(a->fx, CONTROL_POD, control_make_member(a->step, role, index));
    control_add_success(a->fx, "SuccessfulCreatePod", "Created pod: %s", name);
}

static void create_service(struct actor *a, enum job_role role, int index)
{
    char name[CONTROL_NAME_BYTES];
    control_service_name(a->o->job, role, index, name);
    control_add_create(a->fx, CONTROL_SERVICE, control_make_service(a->o->job, role, index));
    control_add_success(a->fx, "SuccessfulCreateService", "Created service: %s", name);
}

/* A pod that still exists, even if it is terminating, keeps its index: there are never two pods for
 * one index. */
static void create_missing(struct actor *a, enum job_role role)
{
    int replicas = a->o->job->replica[role].replicas;
    for (int index = 0; index < replicas && !a->fx->full && !a->fx->failed; index++) {
        int64_t now = a->step->now_unix_ms;
        int64_t not_before = control_not_before(a->step->counters, role, index, now);
        if (control_find_pod(a->o, role, index) ||
            (role == JOB_WORKER && control_is_trained(a->o))) {
            continue;
        }
        if (not_before > now) {
            wake(a, not_before);
        } else {
            create_pod(a, role, index);
        }
    }
    for (int index = 0; index < replicas && !a->fx->full && !a->fx->failed; index++) {
        if (!control_find_service(a->o, role, index)) {
            create_service(a, role, index);
        }
    }
}

/* Deletes the job's pods. Services stay, because the next attempt uses the same names of ranks. */
static void delete_all_pods(struct actor *a)
{
    for (size_t i = 0; i < a->o->pod_count; i++) {
        if (!a->o->pods[i].terminating && !is_lost(a, &a->o->pods[i])) {
            delete_pod(a, &a->o->pods[i]);
        }
    }
}

static void keep_running(struct actor *a)
{
    bool restarts = a->step->restarts;
    delete_lost(a);
    if (restarts) {
        delete_all_pods(a);
    } else {
        delete_surplus(a);
    }
    control_companions_drop(a->step, a->fx);
    bool admitted = control_gang_keep(a->step, a->fx);
    bool begins = admitted && !restarts && !control_awaits_earlier(a->o);
    for (enum job_role role = 0; role < JOB_ROLE_COUNT; role++) {
        if (a->o->job->replica[role].present && begins) {
            create_missing(a, role);
        }
    }
    control_companions_keep(a->step, a->fx);
    /* A deadline of 0 s that began in this step is judged in the next step. */
    int64_t deadline = control_deadline(a->step);
    int64_t soonest = a->step->now_unix_ms + 1;
    wake(a, deadline > soonest ? deadline : soonest);
    wake(a, control_untrained_at(a->step));
    wake(a, control_coordinator_end_awaited_until(a->step));
}

static void suspend(struct actor *a)
{
    delete_picked(a, any_pod);
    control_gang_drop(a->step, a->fx);
    control_companions_drop(a->step, a->fx);
}

void control_act(const struct control_step *step, enum control_state state,
                 struct control_effects *fx)
{
    struct actor a = {step, step->o, fx, INT64_MAX};
    switch (state) {
    case CONTROL_STATE_SUSPENDED: suspend(&a); break;
    case CONTROL_STATE_SUCCEEDED:
    case CONTROL_STATE_FAILED: finish(&a); break;
    case CONTROL_STATE_NEW:
    case CONTROL_STATE_CREATED:
    case CONTROL_STATE_RUNNING:
    case CONTROL_STATE_RESTARTING: keep_running(&a); break;
    }
    if (fx->full) {
        wake(&a, step->now_unix_ms);
    }
    if (a.wake_unix_ms != INT64_MAX) {
        control_add_wake(fx, a.wake_unix_ms);
    }
}
