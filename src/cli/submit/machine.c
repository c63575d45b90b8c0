/* See machine.h. */
#include "cli/submit/machine.h"

#include "base/doc.h"
#include "process/machine/host_path.h"

#include <stdio.h>

enum { PATH_TEXT_BYTES = 256 };

static void check_volume(const json_t *volume, const struct yaml_document *source, const char *role,
                         size_t index, struct job_problems *problems)
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
        job_problem_place(problems, JOB_ERROR, yaml_place_of(source, path), path, hint, "%s %s",
                          folder, fault);
    }
}

static void check_job(const json_t *job, const struct yaml_document *source,
                      struct job_problems *problems)
{
    const char *role;
    json_t *replica;
    json_object_foreach (doc_at(job, "spec.pytorchReplicaSpecs"), role, replica) {
        size_t i;
        json_t *volume;
        json_array_foreach (doc_at(replica, "template.spec.volumes"), i, volume) {
            check_volume(volume, source, role, i, problems);
        }
    }
}

void machine_check(const struct job_file *file, struct job_problems *problems)
{
    for (size_t i = 0; i < file->object_count; i++) {
        check_job(file->objects[i], &file->sources[i], problems);
    }
}
