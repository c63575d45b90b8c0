/* See projection.h. */
#include "control/projection/projection.h"

#include "base/build.h"
#include "base/doc.h"
#include "control/projection/gpu.h"
#include "job/annotations.h"

static void share(struct build *b, json_t *to, const json_t *from, const char *field)
{
    json_t *value = json_object_get(from, field);
    if (value) {
        build_set(b, to, field, json_incref(value));
    }
}

static void share_all(struct build *b, json_t *to, const json_t *from, const char *const *fields)
{
    for (; *fields; fields++) {
        share(b, to, from, *fields);
    }
}

/* Among the owners only the controller matters. */
static void project_owner(struct build *b, json_t *to, const json_t *metadata)
{
    static const char *const fields[] = {"kind", "name", "uid", "controller", NULL};
    size_t index;
    json_t *each;
    json_array_foreach (json_object_get(metadata, "ownerReferences"), index, each) {
        if (doc_bool(each, "controller", false)) {
            json_t *owner = build_value(b, json_object());
            share_all(b, owner, each, fields);
            build_add(b, build_array_at(b, to, "ownerReferences"), owner);
            return;
        }
    }
}

static void project_metadata(struct build *b, json_t *to, const json_t *object)
{
    static const char *const fields[] = {
        "name", "namespace", "uid", "resourceVersion", "deletionTimestamp", NULL};
    const json_t *metadata = json_object_get(object, "metadata");
    const json_t *notes = json_object_get(metadata, "annotations");
    json_t *own = build_object_at(b, to, "metadata");
    share_all(b, own, metadata, fields);
    project_owner(b, own, metadata);
    if (json_object_get(notes, JOB_ANNOTATION_ATTEMPT)) {
        share(b, build_object_at(b, own, "annotations"), notes, JOB_ANNOTATION_ATTEMPT);
    }
}

/* Keeps the end of a container, and whether it waits for its back-off. */
static void project_state(struct build *b, json_t *to, const json_t *status, const char *which)
{
    static const char *const fields[] = {"exitCode", "reason", "message", "finishedAt", NULL};
    const json_t *state = json_object_get(status, which);
    const json_t *terminated = json_object_get(state, "terminated");
    const char *waits = doc_text(state, "waiting.reason", NULL);
    if (terminated) {
        share_all(b, build_object_at(b, build_object_at(b, to, which), "terminated"), terminated,
                  fields);
    }
    if (waits) {
        build_text(b, build_object_at(b, build_object_at(b, to, which), "waiting"), "reason",
                   waits);
    }
}

static void project_containers(struct build *b, json_t *to, const json_t *status, const char *which)
{
    static const char *const fields[] = {"name", "restartCount", NULL};
    size_t index;
    json_t *each;
    json_array_foreach (json_object_get(status, which), index, each) {
        json_t *own = build_value(b, json_object());
        share_all(b, own, each, fields);
        project_state(b, own, each, "state");
        project_state(b, own, each, "lastState");
        build_add(b, build_array_at(b, to, which), own);
    }
}

static void project_conditions(struct build *b, json_t *to, const json_t *status)
{
    static const char *const fields[] = {"type", "status", NULL};
    const json_t *target =
        doc_find(json_object_get(status, "conditions"), "type", "DisruptionTarget");
    if (target) {
        json_t *own = build_value(b, json_object());
        share_all(b, own, target, fields);
        build_add(b, build_array_at(b, to, "conditions"), own);
    }
}

static void project_status(struct build *b, json_t *to, const json_t *pod)
{
    static const char *const fields[] = {"phase", "reason", "message", NULL};
    const json_t *status = json_object_get(pod, "status");
    json_t *own = build_object_at(b, to, "status");
    share_all(b, own, status, fields);
    project_conditions(b, own, status);
    project_containers(b, own, status, "initContainerStatuses");
    project_containers(b, own, status, "containerStatuses");
}

/* Of the resources only GPUs are read. */
static void project_spec(struct build *b, json_t *to, const json_t *pod)
{
    size_t index;
    json_t *each;
    const char *node = doc_text(pod, "spec.nodeName", NULL);
    if (node) {
        build_text(b, build_object_at(b, to, "spec"), "nodeName", node);
    }
    json_array_foreach (doc_at(pod, "spec.containers"), index, each) {
        if (control_holds_gpu(each)) {
            json_t *own = build_value(b, json_object());
            share(b, own, each, "resources");
            build_add(b, build_array_at(b, build_object_at(b, to, "spec"), "containers"), own);
        }
    }
}

json_t *control_project_pod(const json_t *pod)
{
    struct build b = {0};
    json_t *own = build_value(&b, json_object());
    project_metadata(&b, own, pod);
    project_spec(&b, own, pod);
    project_status(&b, own, pod);
    return build_end(&b, own);
}

json_t *control_project_object(const json_t *object)
{
    struct build b = {0};
    json_t *own = build_value(&b, json_object());
    project_metadata(&b, own, object);
    return build_end(&b, own);
}

json_t *control_project_companion(const json_t *object)
{
    static const char *const phase[] = {"phase", NULL};
    struct build b = {0};
    json_t *own = build_value(&b, json_object());
    project_metadata(&b, own, object);
    share(&b, own, object, "spec");
    share_all(&b, build_object_at(&b, own, "status"), json_object_get(object, "status"), phase);
    return build_end(&b, own);
}
