/* See deleted_pods.h. */
#include "daemon/history/deleted_pods.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/file.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POD_BYTES_MAX = 4 << 20, PODS_MAX = 10000 };

int deleted_pods_init(struct deleted_pods *ret, const char *job_folder, const json_t *pod,
                      const json_t *status, struct muster_err *err)
{
    muster_auto(doc) json_t *last = json_copy((json_t *)pod);
    struct deleted_pods r = {.folder = file_join(job_folder, "pods")};
    bool whole = last && r.folder && json_object_set(last, "status", (json_t *)status) == 0;
    if (whole && asprintf(&r.path, "%s/%s.json", r.folder, doc_text(pod, "metadata.uid", "")) < 0) {
        r.path = NULL;
    }
    r.text = whole && r.path ? doc_print(last) : NULL;
    if (!r.text) {
        deleted_pods_done(&r);
        return err_no_memory(err);
    }
    *ret = r;
    return 0;
}

int deleted_pods_write(const struct deleted_pods *remains, struct muster_err *err)
{
    int r = file_mkdir(remains->folder, 0700, err);
    return r < 0 ? r : file_write(remains->path, remains->text, strlen(remains->text), 0600, err);
}

void deleted_pods_done(struct deleted_pods *remains)
{
    free(remains->folder);
    free(remains->path);
    free(remains->text);
    *remains = (struct deleted_pods){0};
}

static void read_one(const char *folder, const char *name, json_t *pods)
{
    muster_auto(free) char *path = file_join(folder, name);
    muster_auto(free) char *text = NULL;
    size_t bytes = 0;
    json_t *pod = NULL;
    if (path && file_read(path, POD_BYTES_MAX, &text, &bytes, NULL) == 0 &&
        doc_parse(text, bytes, &pod, NULL) == 0) {
        json_array_append_new(pods, pod);
    }
}

static bool is_json(const char *name)
{
    size_t length = strlen(name);
    return *name != '.' && length > 5 && strcmp(name + length - 5, ".json") == 0;
}

json_t *deleted_pods_list(const struct home *home, const char *job_uid)
{
    muster_auto(free) char *folder = NULL;
    muster_auto(doc) json_t *pods = json_array();
    if (asprintf(&folder, "%s/jobs/%s/pods", home->path, job_uid) < 0) {
        folder = NULL;
        return muster_take(pods);
    }
    DIR *entries = opendir(folder);
    for (struct dirent *e = entries ? readdir(entries) : NULL;
         e && json_array_size(pods) < PODS_MAX; e = readdir(entries)) {
        if (is_json(e->d_name)) {
            read_one(folder, e->d_name, pods);
        }
    }
    if (entries) {
        closedir(entries);
    }
    return doc_sorted(pods, doc_compare_versions); /* creationTimestamps have whole seconds */
}

json_t *deleted_pods_find(const struct home *home, const char *pod_uid)
{
    muster_auto(free) char *jobs = home_file(home, "jobs");
    muster_auto(doc) json_t *found = json_array();
    if (!jobs || !*pod_uid || strspn(pod_uid, "0123456789abcdef-") < strlen(pod_uid)) {
        return NULL;
    }
    DIR *entries = opendir(jobs);
    for (struct dirent *e = entries ? readdir(entries) : NULL; e && json_array_size(found) == 0;
         e = readdir(entries)) {
        muster_auto(free) char *name = NULL;
        if (*e->d_name != '.' && asprintf(&name, "%s/pods/%s.json", e->d_name, pod_uid) >= 0) {
            read_one(jobs, name, found);
        }
    }
    if (entries) {
        closedir(entries);
    }
    return json_incref(json_array_get(found, 0));
}
