/* See removal_list.h. */
#include "daemon/history/removal_list.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/file.h"
#include "base/log.h"
#include "daemon/history/archive.h"
#include "daemon/history/paths.h"
#include "daemon/object/jobs.h"
#include "job/annotations.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MARK "/deleted"

enum { LEASE_BYTES_MAX = 256 };

char *removal_list_path(const struct removal_list *list, const char *uid, const char *name)
{
    char *path = NULL;
    assert(*uid && *uid != '.' && !strchr(uid, '/'));
    return asprintf(&path, "%s/jobs/%s%s", list->home->path, uid, name) < 0 ? NULL : path;
}

/* Marks the folder, for the next controller, which may have to finish the work. A folder without a
 * mark is kept, also that of a job whose store was moved away. */
static void mark(const struct removal_list *list, const char *uid, const char *lease)
{
    muster_auto(free) char *path = removal_list_path(list, uid, MARK);
    muster_auto(close) int fd = path ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd >= 0 && write(fd, lease, strlen(lease)) < 0) {
        log_event(LOG_WARN, "sweep", "cannot write %s: %s", path, strerror(errno));
    }
}

static void add(struct removal_list *list, const char *uid, const char *lease)
{
    muster_auto(doc) json_t *record = archive_pending(list->home, uid);
    const json_t *job = doc_at(record, "job");
    json_object_set_new(list->uids, uid,
                        json_pack("{s:s, s:s, s:s, s:I}", "lease", lease, "namespace",
                                  doc_text(job, "metadata.namespace", ""), "name",
                                  doc_text(job, "metadata.name", ""), "run",
                                  (json_int_t)(record ? doc_int(record, "run", 1) : 0)));
}

void removal_list_add(struct removal_list *list, const char *uid, const char *lease)
{
    mark(list, uid, lease);
    add(list, uid, lease);
}

/* Whether the job of a record is still in the store. *ret_ends: whether it is deleted, or marked as
 * deleted. */
static bool job_is_there(const struct removal_list *list, const json_t *record, bool *ret_ends)
{
    const json_t *job = doc_at(record, "job");
    const struct store_key key = {"pytorchjobs", doc_text(job, "metadata.namespace", ""),
                                  doc_text(job, "metadata.name", "")};
    muster_auto(doc) json_t *now = NULL;
    int r = store_get(list->store, key, &now, NULL);
    *ret_ends = r != 0 || doc_at(now, "metadata.deletionTimestamp");
    return r == 0
               ? strcmp(doc_text(now, "metadata.uid", ""), doc_text(job, "metadata.uid", "?")) == 0
               : r != MUSTER_ENOENT; /* without an answer the folder is kept */
}

/* Handles a folder without a mark: a controller deleted the job and was killed before it could mark
 * the folder, or the record is for a deletion that did not happen. */
static void find_unmarked(struct removal_list *list, const char *uid)
{
    muster_auto(doc) json_t *record = archive_pending(list->home, uid);
    struct muster_err err = MUSTER_ERR_INIT;
    bool ends = true;
    if (record && !job_is_there(list, record, &ends)) {
        const char *lease = jobs_annotation(doc_at(record, "job"), JOB_ANNOTATION_LEASE);
        removal_list_add(list, uid, lease ? lease : "");
    } else if (record && !ends && archive_forget(list->home, uid, &err) < 0) {
        log_event(LOG_WARN, "history.forget", "%s", err.text);
    }
}

static void find_one(struct removal_list *list, const char *uid)
{
    muster_auto(free) char *path = removal_list_path(list, uid, MARK);
    muster_auto(free) char *lease = NULL;
    struct muster_err err = MUSTER_ERR_INIT;
    if (!path || file_read(path, LEASE_BYTES_MAX, &lease, NULL, NULL) < 0) {
        find_unmarked(list, uid);
        return;
    }
    if (archive_finish(list->home, uid, &err) < 0) {
        log_event(LOG_WARN, "history.finish", "%s", err.text);
        return; /* the folder is kept until a controller can rename it */
    }
    add(list, uid, lease);
}

void removal_list_find(struct removal_list *list)
{
    muster_auto(free) char *folder = home_file(list->home, "jobs");
    DIR *entries = folder ? opendir(folder) : NULL;
    for (struct dirent *e = entries ? readdir(entries) : NULL; e; e = readdir(entries)) {
        if (*e->d_name != '.') {
            find_one(list, e->d_name);
        }
    }
    if (entries) {
        closedir(entries);
    }
}

int64_t removal_list_next_run(const struct removal_list *list, const char *namespace,
                              const char *name)
{
    int64_t last = history_last(list->home, namespace, name);
    const char *uid;
    json_t *entry;
    json_object_foreach (list->uids, uid, entry) {
        int64_t run = doc_int(entry, "run", 0);
        bool same = strcmp(doc_text(entry, "namespace", ""), namespace) == 0 &&
                    strcmp(doc_text(entry, "name", ""), name) == 0;
        last = same && run > last ? run : last;
    }
    return last + 1;
}

json_t *removal_list_pending(const struct removal_list *list, const char *namespace,
                             const char *name)
{
    muster_auto(doc) json_t *records = json_array();
    const char *uid;
    json_t *entry;
    json_object_foreach (list->uids, uid, entry) {
        bool wanted = doc_int(entry, "run", 0) > 0 &&
                      (!namespace || strcmp(doc_text(entry, "namespace", ""), namespace) == 0) &&
                      (!name || strcmp(doc_text(entry, "name", ""), name) == 0);
        json_t *record = wanted ? archive_pending(list->home, uid) : NULL;
        if (record) {
            json_array_append_new(records, record);
        }
    }
    return muster_take(records);
}
