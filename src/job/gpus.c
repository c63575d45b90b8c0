/* See gpus.h. */
#include "job/gpus.h"

#include "base/doc.h"
#include "base/quantity.h"

int64_t job_gpus_of_container(const json_t *container)
{
    static const char *const lists[] = {"resources.limits", "resources.requests"};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        const json_t *wanted = json_object_get(doc_at(container, lists[i]), JOB_GPU_RESOURCE);
        if (json_is_integer(wanted)) {
            return json_integer_value(wanted);
        }
        if (json_is_string(wanted)) {
            int64_t milli = quantity_milli(json_string_value(wanted));
            return milli > 0 ? milli / 1000 : 0;
        }
    }
    return 0;
}

int64_t job_gpus_of_pod(const json_t *pod_spec)
{
    int64_t sum = 0;
    size_t i;
    json_t *container;
    json_array_foreach (doc_at(pod_spec, "containers"), i, container) {
        sum += job_gpus_of_container(container);
    }
    return sum;
}

struct job_gpus job_gpus_of(const json_t *job)
{
    struct job_gpus gpus = {0};
    const char *role;
    json_t *replica;
    json_object_foreach (doc_at(job, "spec.pytorchReplicaSpecs"), role, replica) {
        int64_t each = job_gpus_of_pod(doc_at(replica, "template.spec"));
        gpus.role = each > gpus.most ? role : gpus.role;
        gpus.most = each > gpus.most ? each : gpus.most;
        gpus.all += each * doc_int(replica, "replicas", 1);
    }
    return gpus;
}
