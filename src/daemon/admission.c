/* See admission.h. */
#include "daemon/admission.h"

#include "base/doc.h"
#include "daemon/image.h"
#include "daemon/jobs.h"
#include "job/annotations.h"
#include "pod/environment.h"

#include <string.h>

static int64_t gpus_of(const json_t *container)
{
    static const char *const places[] = {"resources.limits", "resources.requests"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const json_t *wanted = json_object_get(doc_at(container, places[i]), "nvidia.com/gpu");
        if (json_is_integer(wanted)) {
            return json_integer_value(wanted);
        }
        if (json_is_string(wanted)) {
            int64_t milli = pod_quantity_milli(json_string_value(wanted));
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

/* One pod must fit, and without sharing all pods of the job at once: the ranks wait for each other.
 */
static int check_gpus(const struct admission *a, const json_t *job, struct muster_err *err)
{
    const char *mode = jobs_note(job, JOB_NOTE_GPU);
    if (mode && strcmp(mode, "none") == 0) {
        return 0;
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
    if (need > (int64_t)a->gpus->count) {
        return muster_fail(
            err, MUSTER_EDATA,
            "the job asks for %lld GPUs (nvidia.com/gpu), this machine has %zu; --share-gpu "
            "puts several ranks on one, --no-gpu runs without",
            (long long)need, a->gpus->count);
    }
    return 0;
}

/* Comes with a job that was exported after it had been ended; it would end the new one before it
 * began. */
static int check_stop(const json_t *job, struct muster_err *err)
{
    return jobs_note(job, JOB_NOTE_STOP)
               ? muster_fail(err, MUSTER_EDATA,
                             "the annotation %s would end the job at once: remove it",
                             JOB_NOTE_STOP)
               : 0;
}

static int check_lease(const struct admission *a, const json_t *job, struct muster_err *err)
{
    const char *lease = jobs_note(job, JOB_NOTE_LEASE);
    if (!lease || leases_is_open(a->leases, lease)) {
        return 0;
    }
    return muster_fail(err, MUSTER_EDATA,
                       "nobody holds the lease %s: remove the annotation %s, or use muster run",
                       lease, JOB_NOTE_LEASE);
}

int admission_check(const struct admission *a, const char *resource, const json_t *object,
                    struct muster_err *err)
{
    if (strcmp(resource, "pytorchjobs") != 0) {
        return 0;
    }
    const char *runtime = jobs_note(object, JOB_NOTE_RUNTIME);
    bool containers = runtime && strcmp(runtime, "podman") == 0;
    int r = check_stop(object, err);
    r = r < 0 || containers ? r : image_check(object, err);
    r = r < 0 ? r : check_gpus(a, object, err);
    return r < 0 ? r : check_lease(a, object, err);
}
