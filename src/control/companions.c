/* See companions.h. */
#include "control/companions.h"

#include "base/build.h"
#include "base/doc.h"
#include "control/content/autoscaler.h"
#include "control/content/covers.h"
#include "control/content/gang.h"
#include "control/objects.h"
#include "control/observe.h"

#include <string.h>

static json_t *make(const struct job *job, const char *api_version, const char *kind, json_t *spec)
{
    struct build b = {0};
    json_t *object = build_value(&b, json_object());
    build_text(&b, object, "apiVersion", api_version);
    build_text(&b, object, "kind", kind);
    json_t *metadata = build_object_at(&b, object, "metadata");
    build_text(&b, metadata, "name", job->name);
    build_text(&b, metadata, "namespace", job->namespace);
    build_add(&b, build_array_at(&b, metadata, "ownerReferences"), control_owner_reference(job));
    build_set(&b, object, "spec", spec);
    return build_end(&b, object);
}

json_t *control_make_autoscaler(const struct job *job)
{
    return make(job, "autoscaling/v2", "HorizontalPodAutoscaler", control_autoscaler_spec(job));
}

/* Upstream copies all annotations; kubectl's annotation belongs to the job. */
static void copy_annotations(struct build *b, const struct job *job, json_t *object)
{
    json_t *notes = json_deep_copy(doc_at(job->object, "metadata.annotations"));
    if (notes) {
        json_object_del(notes, "kubectl.kubernetes.io/last-applied-configuration");
        build_set(b, build_object_at(b, object, "metadata"), "annotations", notes);
    }
}

json_t *control_make_pod_group(const struct job *job, const struct control_gang *gang)
{
    struct build b = {0};
    bool volcano = gang->kind == CONTROL_GANG_VOLCANO;
    json_t *made =
        make(job, volcano ? "scheduling.volcano.sh/v1beta1" : "scheduling.x-k8s.io/v1alpha1",
             "PodGroup", control_gang_spec(gang, job));
    copy_annotations(&b, job, made);
    return build_end(&b, made);
}

enum control_resource control_gang_resource(const struct control_gang *gang)
{
    return gang->kind == CONTROL_GANG_PLUGINS ? CONTROL_PLUGINS_GROUP : CONTROL_VOLCANO_GROUP;
}

/* Returns the job's own object in the list; NULL: none. An object of that name which the job does
 * not control does not count. */
static const json_t *find(const struct job *job, const json_t *list)
{
    size_t index;
    json_t *each;
    json_array_foreach (list, index, each) {
        if (strcmp(doc_text(each, "metadata.name", ""), job->name) == 0 &&
            control_owns(job->uid, each)) {
            return each;
        }
    }
    return NULL;
}

static bool is_going(const json_t *stored)
{
    return doc_at(stored, "metadata.deletionTimestamp") != NULL;
}

/* Creates `wanted` (taken; NULL: no memory), or updates the spec of `stored` if that does not cover
 * it. If the stored object is being deleted, its end is awaited. */
static void keep(struct control_effects *fx, enum control_resource resource, const json_t *stored,
                 json_t *wanted)
{
    if (!stored || !wanted) {
        control_add_create(fx, resource, wanted);
        return;
    }
    json_t *spec = doc_at(wanted, "spec");
    if (!is_going(stored) && !control_covers(doc_at(stored, "spec"), spec)) {
        control_add_update(fx, resource, stored, json_pack("{s:O}", "spec", spec));
    }
    json_decref(wanted);
}

static void drop(struct control_effects *fx, enum control_resource resource, const json_t *stored)
{
    if (stored && !is_going(stored)) {
        control_add_delete(fx, resource, stored);
    }
}

void control_companions_drop(const struct control_step *s, struct control_effects *fx)
{
    const struct job *job = s->o->job;
    if (!control_wants_autoscaler(job)) {
        drop(fx, CONTROL_AUTOSCALER, find(job, s->o->view->autoscalers));
    }
}

void control_companions_keep(const struct control_step *s, struct control_effects *fx)
{
    const struct control_view *view = s->o->view;
    const struct job *job = s->o->job;
    if (!control_wants_autoscaler(job)) {
        return;
    }
    if (view->autoscalers) {
        keep(fx, CONTROL_AUTOSCALER, find(job, view->autoscalers), control_make_autoscaler(job));
    } else if (s->started && view->target == CONTROL_TARGET_CLUSTER) { /* once */
        control_add_event(
            fx, true, "FailedCreateHorizontalPodAutoscaler",
            "spec.elasticPolicy.metrics has no effect: this cluster serves no "
            "horizontalpodautoscalers of autoscaling/v2, or the operator has no right "
            "to watch them (muster deploy --print has its role)");
    }
}

/* ---- pods that start together ---- */

static const json_t *find_group(const struct control_step *s)
{
    return find(s->o->job, s->o->view->pod_groups);
}

void control_gang_drop(const struct control_step *s, struct control_effects *fx)
{
    const json_t *group = find_group(s);
    if (group && !is_going(group)) {
        control_add_delete(fx, control_gang_resource(&s->o->view->gang), group);
        control_add_success(fx, "SuccessfulDeletePodGroup", "Deleted PodGroup: %s",
                            s->o->job->name);
    }
}

static void say_once(const struct control_step *s, struct control_effects *fx)
{
    if (!s->started) {
        return;
    }
    if (!s->o->view->pod_groups) {
        control_add_event(fx, true, "FailedCreatePodGroup",
                          "the pods of this job wait: the operator was told to have them scheduled "
                          "together by %s, and cannot watch its podgroups (is its definition "
                          "installed? the operator's log has what the API server says)",
                          s->o->view->gang.scheduler);
    }
    if (control_splits_gang(&s->o->view->gang, s->o->job)) {
        control_add_event(fx, true, "SetPodTemplateSchedulerName",
                          "Another scheduler is specified when gang-scheduling is enabled and it "
                          "will not be overwritten");
    }
}

/* Keeps the PodGroup as the job asks for it, but a queue that somebody has moved the group to
 * stays, as upstream does. */
static void keep_group(const struct control_step *s, struct control_effects *fx,
                       const json_t *group)
{
    const struct control_gang *gang = &s->o->view->gang;
    json_t *wanted = control_make_pod_group(s->o->job, gang);
    if (group && *doc_text(group, "spec.queue", "")) {
        json_object_del(doc_at(wanted, "spec"), "queue");
    }
    keep(fx, control_gang_resource(gang), group, wanted);
    if (!group) {
        control_add_success(fx, "SuccessfulCreatePodGroup", "Created PodGroup: %s",
                            s->o->job->name);
    }
}

bool control_gang_keep(const struct control_step *s, struct control_effects *fx)
{
    const struct control_view *view = s->o->view;
    if (!control_has_gang(&view->gang, s->o->job)) {
        control_gang_drop(s, fx);
        return true;
    }
    say_once(s, fx);
    if (!view->pod_groups) {
        return false;
    }
    const json_t *group = find_group(s);
    keep_group(s, fx, group);
    return group && !is_going(group) && control_gang_admits(&view->gang, group);
}

json_t *control_make_member(const struct control_step *s, enum job_role role, int index)
{
    const struct control_gang *gang = &s->o->view->gang;
    const struct job *job = s->o->job;
    json_t *pod = control_make_pod(job, role, index);
    if (s->o->view->restart_rules && job->coordinated && role == JOB_MASTER &&
        job->replica[role].restart_policy == JOB_ON_FAILURE) {
        pod = control_end_coordinator(job, pod);
    }
    return control_has_gang(gang, s->o->job) ? control_join_gang(gang, s->o->job, role, pod) : pod;
}
