/* See admission.h. */
#include "daemon/machine/admission.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/quantity.h"
#include "daemon/machine/image.h"
#include "daemon/object/environments.h"
#include "daemon/object/jobs.h"
#include "job/annotations.h"
#include "pod/environment.h"

#include <stdio.h>
#include <string.h>

#define GPU_RESOURCE "nvidia.com/gpu"

enum { PATH_BYTES = 256 };

static int64_t gpus_of(const json_t *container)
{
    static const char *const places[] = {"resources.limits", "resources.requests"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const json_t *wanted = json_object_get(doc_at(container, places[i]), GPU_RESOURCE);
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

int64_t admission_gpus_wanted(const json_t *pod_spec)
{
    int64_t sum = 0;
    size_t i;
    json_t *container;
    json_array_foreach (doc_at(pod_spec, "containers"), i, container) {
        sum += gpus_of(container);
    }
    return sum;
}

/* Where the first request for GPUs stands. */
static void gpu_path(const json_t *job, char ret[PATH_BYTES])
{
    const char *role;
    json_t *replica;
    *ret = '\0';
    json_object_foreach (doc_at(job, "spec.pytorchReplicaSpecs"), role, replica) {
        size_t i;
        json_t *container;
        json_array_foreach (doc_at(replica, "template.spec.containers"), i, container) {
            if (!*ret && gpus_of(container) > 0) {
                bool limits = json_object_get(doc_at(container, "resources.limits"), GPU_RESOURCE);
                (void)snprintf(ret, PATH_BYTES,
                               "spec.pytorchReplicaSpecs.%s.template.spec.containers[%zu]."
                               "resources.%s[" GPU_RESOURCE "]",
                               role, i, limits ? "limits" : "requests");
            }
        }
    }
}

/* One pod must fit, and without sharing all pods of the job at once: the ranks wait for each other.
 */
static void check_gpus(const struct admission *a, const json_t *job, struct job_problems *problems)
{
    const char *mode = jobs_note(job, JOB_ANNOTATION_GPU);
    if (mode && strcmp(mode, "none") == 0) {
        return;
    }
    bool share = mode && strcmp(mode, "share") == 0;
    int64_t most = 0, all = 0;
    const char *role;
    json_t *replica;
    json_object_foreach (doc_at(job, "spec.pytorchReplicaSpecs"), role, replica) {
        int64_t each = admission_gpus_wanted(doc_at(replica, "template.spec"));
        all += each * doc_int(replica, "replicas", 1);
        most = each > most ? each : most;
    }
    int64_t need = share ? most : all;
    muster_auto(free) char *visible = environments_value(a->home, job, "CUDA_VISIBLE_DEVICES");
    bool pool[GPUS_MAX];
    size_t allowed = gpus_pool(a->gpus, visible, pool);
    char path[PATH_BYTES];
    gpu_path(job, path);
    if (need > (int64_t)a->gpus->count) {
        job_problem_add(problems, JOB_ERROR, path, NULL,
                        "the job needs %lld GPUs (" GPU_RESOURCE "), this machine has %zu",
                        (long long)need, a->gpus->count);
        job_problem_reason(problems, "InsufficientGPUs");
    } else if (need > (int64_t)allowed) {
        job_problem_add(problems, JOB_ERROR, path, NULL,
                        "the job needs %lld GPUs (" GPU_RESOURCE "), this machine has %zu, and "
                        "CUDA_VISIBLE_DEVICES of the shell that submits it allows %zu of them: "
                        "\"%.80s\"",
                        (long long)need, a->gpus->count, allowed, visible);
        job_problem_reason(problems, "InsufficientGPUs");
    }
}

static void refuse_annotation(struct job_problems *problems, const char *name, const char *why)
{
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof path, "metadata.annotations[%s]", name);
    job_problem_add(problems, JOB_ERROR, path, "remove it", "%s", why);
}

void admission_check(const struct admission *a, const char *resource, const json_t *object,
                     struct job_problems *problems)
{
    if (strcmp(resource, "pytorchjobs") != 0) {
        return;
    }
    const char *runtime = jobs_note(object, JOB_ANNOTATION_RUNTIME);
    const char *lease = jobs_note(object, JOB_ANNOTATION_LEASE);
    /* It comes with a job that was exported after it had been ended. */
    if (jobs_note(object, JOB_ANNOTATION_STOP)) {
        refuse_annotation(problems, JOB_ANNOTATION_STOP, "would end the job at once");
    }
    if (!runtime || strcmp(runtime, "podman") != 0) {
        image_check(object, problems);
    }
    if (jobs_note(object, JOB_ANNOTATION_ENVIRONMENT) && !environments_has(a->home, object)) {
        refuse_annotation(problems, JOB_ANNOTATION_ENVIRONMENT,
                          "names an environment that went with its job");
    }
    check_gpus(a, object, problems);
    if (lease && !leases_is_open(a->leases, lease)) {
        refuse_annotation(problems, JOB_ANNOTATION_LEASE,
                          "names a lease that is not held: the job would end at once");
    }
}
