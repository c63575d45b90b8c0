/* --results: volumes, logs and status in a folder of the user's; see result.h. */
#include "base/err.h"
#include "base/file.h"
#include "cli/pod/copy.h"
#include "cli/pod/ranks.h"
#include "cli/result/result.h"
#include "cli/result/results_folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int write_doc(const char *folder, const char *name, const json_t *doc,
                     struct muster_err *err)
{
    muster_auto(free) char *path = file_join(folder, name);
    muster_auto(free) char *text = doc_print_pretty(doc);
    if (!path || !text) {
        return err_no_memory(err);
    }
    return file_write(path, text, strlen(text), 0644, err);
}

/* Copies a log to POD.log, or to POD-CONTAINER.log if it is not the main container's. A rotated log
 * is several files, oldest first. */
static int copy_log(const char *folder, const json_t *pod, const char *container,
                    const json_t *place, struct muster_err *err)
{
    muster_auto(free) char *path = NULL;
    bool main = strcmp(container, ranks_main_container(pod)) == 0;
    if (asprintf(&path, "%s/%s%s%s.log", folder, doc_text(pod, "metadata.name", ""),
                 main ? "" : "-", main ? "" : container) < 0) {
        path = NULL;
        return err_no_memory(err);
    }
    if (unlink(path) < 0 && errno != ENOENT) {
        return muster_fail(err, MUSTER_ECREATE, "cannot write %s: %s", path, strerror(errno));
    }
    int r = 0;
    size_t i;
    json_t *part;
    json_array_foreach (doc_at(place, "logs"), i, part) {
        int failed = copy_append(json_string_value(part), path, err);
        r = failed == MUSTER_ENOENT ? r : failed < 0 ? failed : r; /* rotated away meanwhile */
    }
    return r;
}

static int copy_logs(const struct followed_job *j, const char *folder, struct muster_err *err)
{
    muster_auto(free) char *logs = file_join(folder, "logs");
    int r = logs ? file_mkdir(logs, 0777, err) : err_no_memory(err);
    const char *pod;
    json_t *containers;
    json_object_foreach (j->places, pod, containers) {
        const char *container;
        json_t *place;
        json_object_foreach (containers, container, place) {
            r = r < 0 ? r : copy_log(logs, json_object_get(j->pods, pod), container, place, err);
        }
    }
    return r;
}

/* Copies a volume. A claim is one folder; empty directories of two pods with the same name must not
 * be mixed. */
static int copy_volume(const char *folder, const json_t *volume, struct muster_err *err)
{
    const char *name = doc_text(volume, "name", "");
    bool kept = doc_bool(volume, "kept", false);
    muster_auto(free) char *path = NULL;
    if (asprintf(&path, "%s/volumes/%s%s%s", folder, name, kept ? "" : "-",
                 kept ? "" : doc_text(volume, "pod", "")) < 0) {
        path = NULL;
        return err_no_memory(err);
    }
    muster_auto(free) char *parent = file_join(folder, "volumes");
    int r = parent ? file_mkdir(parent, 0777, err) : err_no_memory(err);
    r = r < 0 ? r : copy_tree(doc_text(volume, "path", ""), path, err);
    return r == MUSTER_ENOENT && !kept ? 0 : r; /* an empty directory is deleted with its pod */
}

static int copy_all(const struct followed_job *job, const char *folder, struct muster_err *err)
{
    muster_auto(doc) json_t *volumes = result_volumes(job);
    int r = write_doc(folder, "status.json", job->object, err);
    r = r < 0 ? r : copy_logs(job, folder, err);
    size_t i;
    json_t *volume;
    json_array_foreach (volumes, i, volume) {
        r = r < 0 ? r : copy_volume(folder, volume, err);
    }
    return r;
}

int result_copy(const struct followed_job *job, const char *folder, struct muster_err *err)
{
    struct results_folder results;
    int r = results_folder_begin(folder, &results, err);
    if (r < 0) {
        return r;
    }
    muster_auto(doc) json_t *manifest =
        json_pack("{s:s, s:s, s:s}", "job", job->name, "namespace", job->namespace, "uid",
                  doc_text(job->object, "metadata.uid", ""));
    r = manifest ? copy_all(job, results.staging, err) : err_no_memory(err);
    r = r < 0 ? r : results_folder_commit(&results, manifest, err);
    results_folder_done(&results);
    return r;
}
