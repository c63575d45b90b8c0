/* See admission.h. */
#include "daemon/machine/admission.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "daemon/machine/environments.h"
#include "daemon/machine/image.h"
#include "daemon/object/jobs.h"
#include "job/annotations.h"
#include "job/gpus.h"
#include "job/items.h"
#include "pod/resolve_env.h"
#include "process/machine/words.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 320 };

/* Writes the path of the first request for GPUs to `context`. */
static int note_gpu_path(void *context, const json_t *container, const char *role, const char *path)
{
    (void)role;
    char *ret = context;
    if (job_gpus_of_container(container) <= 0) {
        return 0;
    }
    bool limits = json_object_get(doc_at(container, "resources.limits"), JOB_GPU_RESOURCE);
    (void)snprintf(ret, PATH_BYTES, "%s.resources.%s[" JOB_GPU_RESOURCE "]", path,
                   limits ? "limits" : "requests");
    return MUSTER_EEXIST; /* found: the walk ends */
}

/* Checks that the GPUs are enough for one pod or, if they are not shared, for all pods of the job
 * at once, because the ranks wait for each other. */
static void check_gpus(const struct admission *a, const json_t *job, struct job_problems *problems)
{
    const char *mode = jobs_annotation(job, JOB_ANNOTATION_GPU);
    if (mode && strcmp(mode, "none") == 0) {
        return;
    }
    bool share = mode && strcmp(mode, "share") == 0;
    struct job_gpus gpus = job_gpus_of(job);
    int64_t need = share ? gpus.most : gpus.all;
    muster_auto(free) char *visible = environments_value(a->home, job, "CUDA_VISIBLE_DEVICES");
    bool pool[GPUS_MAX];
    size_t allowed = gpus_pool(a->gpus, visible, pool);
    char path[PATH_BYTES] = "";
    (void)job_each_item(job, "containers", note_gpu_path, path);
    if (need > (int64_t)a->gpus->count) {
        job_problem_add(problems, JOB_ERROR, path, NULL,
                        "the job needs %lld GPUs (" JOB_GPU_RESOURCE "), this machine has %zu",
                        (long long)need, a->gpus->count);
        job_problem_reason(problems, "InsufficientGPUs");
    } else if (need > (int64_t)allowed) {
        job_problem_add(problems, JOB_ERROR, path, NULL,
                        "the job needs %lld GPUs (" JOB_GPU_RESOURCE "), this machine has %zu, and "
                        "CUDA_VISIBLE_DEVICES of the shell that submits it allows %zu of them: "
                        "\"%.80s\"",
                        (long long)need, a->gpus->count, allowed, visible);
        job_problem_reason(problems, "InsufficientGPUs");
    }
}

struct words_search {
    struct job_problems *problems;
    long most_bytes;
};

static int refuse_words(void *context, const json_t *container, const char *role, const char *at)
{
    (void)role;
    const struct words_search *s = context;
    struct words_fault fault;
    if (words_fault(container, at, s->most_bytes, &fault)) {
        job_problem_add(s->problems, JOB_ERROR, fault.path, fault.hint, "%s", fault.text);
    }
    return 0;
}

/* Checks the lengths of commands. A job that has the limits of its shell may have another stack
 * limit than this program; the command line has checked that limit. */
static void check_words(const json_t *job, struct job_problems *problems)
{
    bool own = jobs_annotation(job, JOB_ANNOTATION_ENVIRONMENT) == NULL;
    struct words_search s = {problems, own ? sysconf(_SC_ARG_MAX) : WORDS_BYTES_MAX};
    (void)job_each_item(job, "initContainers", refuse_words, &s);
    (void)job_each_item(job, "containers", refuse_words, &s);
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
    const char *runtime = jobs_annotation(object, JOB_ANNOTATION_RUNTIME);
    const char *lease = jobs_annotation(object, JOB_ANNOTATION_LEASE);
    /* A job that was exported after it had been ended has this annotation. */
    if (jobs_annotation(object, JOB_ANNOTATION_STOP)) {
        refuse_annotation(problems, JOB_ANNOTATION_STOP, "would end the job at once");
    }
    if (!runtime || strcmp(runtime, "podman") != 0) {
        image_check(object, problems);
    }
    if (jobs_annotation(object, JOB_ANNOTATION_ENVIRONMENT) && !environments_has(a->home, object)) {
        refuse_annotation(problems, JOB_ANNOTATION_ENVIRONMENT,
                          "names an environment that went with its job");
    }
    check_words(object, problems);
    check_gpus(a, object, problems);
    if (lease && !leases_is_open(a->leases, lease)) {
        refuse_annotation(problems, JOB_ANNOTATION_LEASE,
                          "names a lease that is not held: the job would end at once");
    }
}
