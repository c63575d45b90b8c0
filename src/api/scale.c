/* The scale subresource of jobs: spec.pytorchReplicaSpecs.Worker.replicas as an autoscaling/v1
 * Scale. The paths are those of upstream's CRD.
 *
 * Layer: services.
 */
#include "api/internal.h"
#include "api/patch/merge.h"

#include "base/build.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"

#include <string.h>

static const char spec_path[] = "spec.pytorchReplicaSpecs.Worker.replicas";

static json_t *make_scale(const json_t *job)
{
    static const char *const copied[] = {"name", "namespace", "uid", "resourceVersion",
                                         "creationTimestamp"};
    struct build b = {0};
    const json_t *metadata = json_object_get(job, "metadata");
    bool has_workers = doc_at(job, "spec.pytorchReplicaSpecs.Worker");
    json_t *scale = build_value(&b, json_object());
    build_text(&b, scale, "kind", "Scale");
    build_text(&b, scale, "apiVersion", "autoscaling/v1");
    for (size_t i = 0; i < sizeof copied / sizeof copied[0]; i++) {
        build_text(&b, build_object_at(&b, scale, "metadata"), copied[i],
                   doc_text(metadata, copied[i], NULL));
    }
    build_int(&b, build_object_at(&b, scale, "spec"), "replicas",
              doc_int(job, spec_path, has_workers ? 1 : 0));
    json_t *status = build_object_at(&b, scale, "status");
    build_int(&b, status, "replicas", doc_int(job, "status.replicaStatuses.Worker.active", 0));
    build_text(&b, status, "selector",
               doc_text(job, "status.replicaStatuses.Worker.selector", NULL));
    return build_end(&b, scale);
}

int verb_get_scale(struct api_call *call, struct muster_err *err)
{
    muster_auto(doc) json_t *job = NULL;
    int r = store_get(call->api->store, call_key(call), &job, err);
    if (r == 0) {
        api_send_json(call->reply, 200, make_scale(job));
    }
    return r;
}

/* Reads the new Scale: the body itself, or the body as a patch of the present Scale. */
static int read_scale(struct api_call *call, const json_t *job, json_t **ret,
                      struct muster_err *err)
{
    if (strcmp(call->request->method, "PUT") == 0) {
        *ret = json_incref(call->body);
        return 0;
    }
    muster_auto(doc) json_t *present = make_scale(job);
    const char *type = http_header(call->request, "Content-Type");
    if (!present) {
        return err_no_memory(err);
    }
    return type && strncmp(type, "application/json-patch", strlen("application/json-patch")) == 0
               ? json_patch(present, call->body, ret, err)
               : merge_patch(present, call->body, ret, err);
}

static int scaled_job(struct api_call *call, const json_t *job, const json_t *scale, json_t **ret,
                      struct muster_err *err)
{
    int64_t replicas = doc_int(scale, "spec.replicas", -1);
    if (replicas < 0) {
        job_problem_add(&call->problems, JOB_ERROR, "spec.replicas", NULL,
                        "Invalid value: must be a number from 0");
        return muster_fail(err, MUSTER_EDATA, "spec.replicas must be a number from 0");
    }
    if (!doc_at(job, "spec.pytorchReplicaSpecs.Worker")) {
        job_problem_add(&call->problems, JOB_ERROR, "spec.pytorchReplicaSpecs.Worker", NULL,
                        "the job has no Worker to scale");
        return muster_fail(err, MUSTER_EDATA, "the job has no Worker to scale");
    }
    muster_auto(doc) json_t *after = json_deep_copy(job);
    const char *version = doc_text(scale, "metadata.resourceVersion", NULL);
    if (!after || doc_set_int(after, spec_path, replicas) < 0 ||
        (version && doc_set_text(after, "metadata.resourceVersion", version) < 0)) {
        return err_no_memory(err);
    }
    *ret = muster_take(after);
    return 0;
}

int verb_set_scale(struct api_call *call, struct muster_err *err)
{
    muster_auto(doc) json_t *job = NULL;
    muster_auto(doc) json_t *scale = NULL;
    muster_auto(doc) json_t *after = NULL;
    muster_auto(doc) json_t *stored = NULL;
    int r = store_get(call->api->store, call_key(call), &job, err);
    r = r < 0 ? r : read_scale(call, job, &scale, err);
    r = r < 0 ? r : scaled_job(call, job, scale, &after, err);
    r = r < 0 ? r : call_own_changes(call, job, after, err);
    r = r < 0 ? r : admit(call, job, after, err);
    if (r < 0) {
        return r;
    }
    if (call->dry_run) {
        api_send_json(call->reply, 200, make_scale(after));
        return 0;
    }
    r = store_update(call->api->store, call->route.resource->plural, after, STORE_BUT_STATUS,
                     &stored, err);
    if (r == 0) {
        api_send_json(call->reply, 200, make_scale(stored));
    }
    return r;
}
