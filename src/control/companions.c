/* See companions.h. */
#include "control/companions.h"

#include "base/build.h"
#include "base/doc.h"
#include "control/content/autoscaler.h"
#include "control/content/covers.h"
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

/* The job's own among the list; NULL: none. A stranger of its name is none. */
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

/* Creates `wanted` (taken; NULL: no memory), or updates the spec of `stored` where that does not
 * cover it. One that is on its way out is waited for. */
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
