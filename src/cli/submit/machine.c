/* See machine.h. */
#include "cli/submit/machine.h"

#include "base/doc.h"
#include "base/file.h"
#include "job/annotations.h"
#include "process/machine/gpus.h"
#include "process/machine/host_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GPU_RESOURCE "nvidia.com/gpu"

enum { PATH_TEXT_BYTES = 256 };

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

static void check_volume(const struct search *s, const json_t *volume, const char *role,
                         size_t index)
{
    char path[PATH_TEXT_BYTES];
    const char *hint = NULL;
    const char *folder = doc_text(volume, "hostPath.path", NULL);
    const char *type = doc_text(volume, "hostPath.type", "");
    bool absolute = folder && *folder == '/'; /* lint says of the others that they must be */
    const char *fault = absolute ? host_path_fault(folder, type, &hint) : NULL;
    if (fault) {
        (void)snprintf(path, sizeof path,
                       "spec.pytorchReplicaSpecs.%s.template.spec.volumes[%zu].hostPath.path", role,
                       index);
        job_problem_place(s->problems, s->severity, yaml_place_of(s->source, path), path, hint,
                          "%s %s%s", folder, fault,
                          s->severity == JOB_ERROR ? "" : ": muster run refuses the job here");
    }
}

static void check_volumes(const struct search *s)
{
    const char *role;
    json_t *replica;
    json_object_foreach (doc_at(s->job, "spec.pytorchReplicaSpecs"), role, replica) {
        size_t i;
        json_t *volume;
        json_array_foreach (doc_at(replica, "template.spec.volumes"), i, volume) {
            check_volume(s, volume, role, i);
        }
    }
}

/* ---- Working directories ---- */

/* What lies under a mount is not there before the pod is. */
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

static void check_folder(const struct search *s, const json_t *container, const char *role,
                         size_t index)
{
    char path[PATH_TEXT_BYTES];
    const char *folder = doc_text(container, "workingDir", "");
    if (*folder != '/' || file_exists(folder) || is_mounted(container, folder)) {
        return;
    }
    (void)snprintf(path, sizeof path,
                   "spec.pytorchReplicaSpecs.%s.template.spec.containers[%zu].workingDir", role,
                   index);
    job_problem_place(s->problems, JOB_WARNING, yaml_place_of(s->source, path), path,
                      "muster run --workdir DIR is another",
                      "%.200s does not exist on this machine", folder);
}

static void check_folders(const struct search *s)
{
    const char *role;
    json_t *replica;
    json_object_foreach (doc_at(s->job, "spec.pytorchReplicaSpecs"), role, replica) {
        size_t i;
        json_t *container;
        json_array_foreach (doc_at(replica, "template.spec.containers"), i, container) {
            check_folder(s, container, role, i);
        }
    }
}

/* ---- GPUs ---- */

static int64_t gpus_of(const json_t *container)
{
    static const char *const lists[] = {"resources.limits", "resources.requests"};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        const json_t *wanted = json_object_get(doc_at(container, lists[i]), GPU_RESOURCE);
        if (wanted) {
            const char *text = json_string_value(wanted);
            return text ? strtoll(text, NULL, 10) : json_integer_value(wanted);
        }
    }
    return 0;
}

/* As the controller counts (daemon/admission.h): all pods at once, or one where they share. */
static int64_t count_wanted(const struct search *s, const char **ret_role)
{
    bool share = strcmp(note(s, JOB_ANNOTATION_GPU), "share") == 0;
    int64_t most = 0, all = 0;
    const char *role;
    json_t *replica;
    json_object_foreach (doc_at(s->job, "spec.pytorchReplicaSpecs"), role, replica) {
        int64_t each = 0;
        size_t i;
        json_t *container;
        json_array_foreach (doc_at(replica, "template.spec.containers"), i, container) {
            each += gpus_of(container);
        }
        *ret_role = each > most ? role : *ret_role;
        most = each > most ? each : most;
        all += each * doc_int(replica, "replicas", 1);
    }
    return share ? most : all;
}

static void check_gpus(const struct search *s)
{
    struct gpus gpus;
    const char *role = "";
    int64_t wanted = count_wanted(s, &role);
    if (wanted == 0 || strcmp(note(s, JOB_ANNOTATION_GPU), "none") == 0) {
        return;
    }
    gpus_discover(&gpus, "", getenv("MUSTER_GPUS"));
    if (wanted > (int64_t)gpus.count) {
        char path[PATH_TEXT_BYTES];
        (void)snprintf(path, sizeof path, "spec.pytorchReplicaSpecs.%s", role);
        job_problem_place(s->problems, JOB_WARNING, yaml_place_of(s->source, path), path,
                          "muster run --share-gpu puts several ranks on one GPU, --no-gpu runs "
                          "without",
                          "the job needs %lld GPUs (" GPU_RESOURCE "), this machine has %zu: "
                          "muster run refuses the job here",
                          (long long)wanted, gpus.count);
    }
}

void machine_check(const struct job_file *file, struct job_problems *problems)
{
    for (size_t i = 0; i < file->object_count; i++) {
        const struct search s = {file->objects[i], &file->sources[i], JOB_ERROR, problems};
        check_volumes(&s);
    }
}

void machine_lint(const struct job_file *file, struct job_problems *problems)
{
    for (size_t i = 0; i < file->object_count; i++) {
        const struct search s = {file->objects[i], &file->sources[i], JOB_WARNING, problems};
        check_volumes(&s);
        if (strcmp(note(&s, JOB_ANNOTATION_RUNTIME), "podman") != 0) {
            check_folders(&s);
        }
        check_gpus(&s);
    }
}
