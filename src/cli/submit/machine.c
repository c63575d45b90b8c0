/* See machine.h. */
#include "cli/submit/machine.h"

#include "base/doc.h"
#include "base/file.h"
#include "job/annotations.h"
#include "job/gpus.h"
#include "job/items.h"
#include "process/machine/gpus.h"
#include "process/machine/host_path.h"
#include "process/machine/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_TEXT_BYTES = 320 };

struct search {
    const json_t *job;
    const struct yaml_document *source;
    enum job_severity severity;
    struct job_problems *problems;
};

static const char *note(const struct search *s, const char *name)
{
    const char *text =
        json_string_value(json_object_get(doc_at(s->job, "metadata.annotations"), name));
    return text ? text : "";
}

/* ---- Volumes ---- */

static int check_volume(void *context, const json_t *volume, const char *role, const char *at)
{
    (void)role;
    const struct search *s = context;
    char path[PATH_TEXT_BYTES];
    const char *hint = NULL;
    const char *folder = doc_text(volume, "hostPath.path", NULL);
    const char *type = doc_text(volume, "hostPath.type", "");
    bool absolute = folder && *folder == '/'; /* lint reports that the others must be absolute */
    const char *fault = absolute ? host_path_fault(folder, type, &hint) : NULL;
    if (fault) {
        (void)snprintf(path, sizeof path, "%s.hostPath.path", at);
        job_problem_place(s->problems, s->severity, yaml_place_of(s->source, path), path, hint,
                          "%s %s%s", folder, fault,
                          s->severity == JOB_ERROR ? "" : ": muster run refuses the job here");
    }
    return 0;
}

/* ---- Words ---- */

static int check_words(void *context, const json_t *container, const char *role, const char *at)
{
    (void)role;
    const struct search *s = context;
    struct words_fault fault;
    if (words_fault(container, at, sysconf(_SC_ARG_MAX), &fault)) {
        job_problem_place(s->problems, s->severity, yaml_place_of(s->source, fault.path),
                          fault.path, fault.hint, "%s", fault.text);
    }
    return 0;
}

static void check_all_words(struct search *s)
{
    (void)job_each_item(s->job, "initContainers", check_words, s);
    (void)job_each_item(s->job, "containers", check_words, s);
}

/* ---- Working directories ---- */

/* Whether the folder lies under a mount: it then need not exist before the pod does. */
static bool is_mounted(const json_t *container, const char *folder)
{
    size_t i;
    json_t *mount;
    json_array_foreach (doc_at(container, "volumeMounts"), i, mount) {
        const char *path = doc_text(mount, "mountPath", "/");
        size_t length = strlen(path);
        if (length > 0 && strncmp(folder, path, length) == 0 &&
            (folder[length] == '/' || folder[length] == '\0' || path[length - 1] == '/')) {
            return true;
        }
    }
    return false;
}

static int check_folder(void *context, const json_t *container, const char *role, const char *at)
{
    (void)role;
    const struct search *s = context;
    char path[PATH_TEXT_BYTES];
    const char *folder = doc_text(container, "workingDir", "");
    if (*folder != '/' || file_exists(folder) || is_mounted(container, folder)) {
        return 0;
    }
    (void)snprintf(path, sizeof path, "%s.workingDir", at);
    job_problem_place(s->problems, JOB_WARNING, yaml_place_of(s->source, path), path,
                      "muster run --workdir DIR is another",
                      "%.200s does not exist on this machine", folder);
    return 0;
}

/* ---- GPUs ---- */

/* Counts GPUs as the controller does (daemon/machine/admission.h): those of all pods at once, or of
 * one pod if they share. */
static void check_gpus(const struct search *s)
{
    struct gpus gpus;
    const struct job_gpus of_job = job_gpus_of(s->job);
    bool share = strcmp(note(s, JOB_ANNOTATION_GPU), "share") == 0;
    int64_t wanted = share ? of_job.most : of_job.all;
    if (wanted == 0 || strcmp(note(s, JOB_ANNOTATION_GPU), "none") == 0) {
        return;
    }
    gpus_discover(&gpus, "", getenv("MUSTER_GPUS"));
    if (wanted > (int64_t)gpus.count) {
        char path[PATH_TEXT_BYTES];
        (void)snprintf(path, sizeof path, "spec.pytorchReplicaSpecs.%s", of_job.role);
        job_problem_place(s->problems, JOB_WARNING, yaml_place_of(s->source, path), path,
                          "muster run --share-gpu puts several ranks on one GPU, --no-gpu runs "
                          "without",
                          "the job needs %lld GPUs (" JOB_GPU_RESOURCE "), this machine has %zu: "
                          "muster run refuses the job here",
                          (long long)wanted, gpus.count);
    }
}

void machine_check(const struct job_file *file, struct job_problems *problems)
{
    for (size_t i = 0; i < file->object_count; i++) {
        struct search s = {file->objects[i], &file->sources[i], JOB_ERROR, problems};
        (void)job_each_item(s.job, "volumes", check_volume, &s);
        check_all_words(&s);
    }
}

void machine_lint(const struct job_file *file, struct job_problems *problems)
{
    for (size_t i = 0; i < file->object_count; i++) {
        struct search s = {file->objects[i], &file->sources[i], JOB_WARNING, problems};
        (void)job_each_item(s.job, "volumes", check_volume, &s);
        check_all_words(&s);
        if (strcmp(note(&s, JOB_ANNOTATION_RUNTIME), "podman") != 0) {
            (void)job_each_item(s.job, "containers", check_folder, &s);
        }
        check_gpus(&s);
    }
}
