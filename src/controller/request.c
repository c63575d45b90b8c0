/* The request that carries out an effect. See internal.h. */
#include "base/doc.h"
#include "controller/internal.h"
#include "controller/planted.h"

#include <assert.h>

/* The body of each verb; a new reference, NULL without memory or where there is none. */
static json_t *body_of(const struct task *task, const struct control_effect *e)
{
    const json_t *job = task->flow.job;
    json_t *copy = NULL;
    if (e->verb == CONTROL_CREATE || e->verb == CONTROL_UPDATE) {
        return json_incref(e->object);
    }
    if (e->verb == CONTROL_UPDATE_STATUS) {
        copy = json_copy((json_t *)job);
        if (PLANTED_DRIVER(BLIND_STATUS)) {
            doc_set(copy, "metadata", json_object());
        }
        if (copy && json_object_set(copy, "status", e->object) != 0) {
            json_decref(copy);
            copy = NULL;
        }
    }
    return copy;
}

struct cluster_request driver_request(const struct task *task, const struct control_effect *e)
{
    const json_t *job = task->flow.job;
    bool on_job = e->verb == CONTROL_UPDATE_STATUS ||
                  (e->verb == CONTROL_DELETE && e->resource == CONTROL_JOB);
    enum control_resource resource = on_job ? CONTROL_JOB : e->resource;
    struct cluster_request request = {
        .lane = on_job ? CLUSTER_LANE_JOBS : CLUSTER_LANE_PARTS,
        .resource = &driver_resources[resource],
        .namespace = doc_text(job, "metadata.namespace", ""),
        .name = on_job ? doc_text(job, "metadata.name", "") : e->name,
        .without_managers = !on_job,
        .grace_s = e->node ? 0 : CLUSTER_GRACE_DEFAULT,
        .body = body_of(task, e),
    };
    switch (e->verb) {
    case CONTROL_CREATE: request.verb = CLUSTER_CREATE; break;
    case CONTROL_UPDATE:
        request.verb = CLUSTER_PATCH;
        request.patch = CLUSTER_PATCH_MERGE;
        break;
    case CONTROL_UPDATE_STATUS:
        request.verb = CLUSTER_REPLACE;
        request.subresource = "status";
        break;
    case CONTROL_DELETE:
        request.verb = CLUSTER_DELETE;
        request.uid = on_job ? doc_text(job, "metadata.uid", NULL) : e->uid;
        request.uid = PLANTED_DRIVER(DELETE_BY_NAME) ? NULL : request.uid;
        request.version = on_job ? doc_text(job, "metadata.resourceVersion", NULL) : NULL;
        break;
    case CONTROL_RECORD_EVENT:
    case CONTROL_WAKE_AT: assert(!"no request");
    }
    return request;
}
