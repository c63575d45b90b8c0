/* Makes the request that carries out an effect. See internal.h. */
#include "base/doc.h"
#include "controller/internal.h"
#include "controller/planted.h"

#include <assert.h>

/* Returns the job with that status. An API server keeps the managedFields of the stored job,
 * whatever the body of a status has, so sending them would only cost it time to parse them. */
static json_t *with_status(const json_t *job, json_t *status)
{
    json_t *copy = json_copy((json_t *)job);
    json_t *metadata = json_copy(json_object_get(job, "metadata"));
    (void)json_object_del(metadata, "managedFields");
    if (PLANTED_DRIVER(BLIND_STATUS)) {
        (void)json_object_clear(metadata);
    }
    bool set = json_object_set(copy, "metadata", metadata) == 0 &&
               json_object_set(copy, "status", status) == 0;
    json_decref(metadata);
    if (!set) {
        json_decref(copy);
        return NULL;
    }
    return copy;
}

/* Returns the body for each verb, a new reference; NULL without memory, or if there is none. */
static json_t *body_of(const struct task *task, const struct control_effect *e)
{
    switch (e->verb) {
    case CONTROL_CREATE:
    case CONTROL_UPDATE: return json_incref(e->object);
    case CONTROL_UPDATE_STATUS: return with_status(task->flow.job, e->object);
    case CONTROL_DELETE:
    case CONTROL_RECORD_EVENT:
    case CONTROL_WAKE_AT: return NULL;
    }
    return NULL;
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
