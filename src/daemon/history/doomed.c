/* See doomed.h. */
#include "daemon/history/doomed.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/file.h"
#include "base/log.h"
#include "daemon/history/archive.h"
#include "daemon/history/place.h"
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

char *doomed_path(const struct doomed *doomed, const char *uid, const char *name)
{
    char *path = NULL;
    assert(*uid && *uid != '.' && !strchr(uid, '/'));
    return asprintf(&path, "%s/jobs/%s%s", doomed->home->path, uid, name) < 0 ? NULL : path;
}

/* The next controller may have to finish this one's work. A folder without the mark stays: that of
 * a job whose store was moved away, too. */
static void mark(const struct doomed *doomed, const char *uid, const char *lease)
{
    muster_auto(free) char *path = doomed_path(doomed, uid, MARK);
    muster_auto(close) int fd = path ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd >= 0 && write(fd, lease, strlen(lease)) < 0) {
        log_event(LOG_WARN, "sweep", "cannot write %s: %s", path, strerror(errno));
    }
}

static void add(struct doomed *doomed, const char *uid, const char *lease)
{
    muster_auto(doc) json_t *record = archive_pending(doomed->home, uid);
    const json_t *job = doc_at(record, "job");
    json_object_set_new(doomed->uids, uid,
                        json_pack("{s:s, s:s, s:s, s:I}", "lease", lease, "namespace",
                                  doc_text(job, "metadata.namespace", ""), "name",
                                  doc_text(job, "metadata.name", ""), "run",
                                  (json_int_t)(record ? doc_int(record, "run", 1) : 0)));
}

void doomed_add(struct doomed *doomed, const char *uid, const char *lease)
{
    mark(doomed, uid, lease);
    add(doomed, uid, lease);
}

/* Whether the job of a record is in the store still. */
static bool job_is_there(const struct doomed *doomed, const json_t *record)
{
    const json_t *job = doc_at(record, "job");
    const struct store_key key = {"pytorchjobs", doc_text(job, "metadata.namespace", ""),
                                  doc_text(job, "metadata.name", "")};
    muster_auto(doc) json_t *now = NULL;
    int r = store_get(doomed->store, key, &now, NULL);
    return r == 0
               ? strcmp(doc_text(now, "metadata.uid", ""), doc_text(job, "metadata.uid", "?")) == 0
               : r != MUSTER_ENOENT; /* who cannot tell changes nothing */
}

/* Deleted by a controller that was killed before it could mark the folder, or recorded for a
 * deletion that did not happen. */
static void find_unmarked(struct doomed *doomed, const char *uid)
{
    muster_auto(doc) json_t *record = archive_pending(doomed->home, uid);
    struct muster_err err = {0};
    if (record && !job_is_there(doomed, record)) {
        const char *lease = jobs_note(doc_at(record, "job"), JOB_ANNOTATION_LEASE);
        doomed_add(doomed, uid, lease ? lease : "");
    } else if (record && archive_forget(doomed->home, uid, &err) < 0) {
        log_event(LOG_WARN, "history.forget", "%s", err.text);
    }
}

static void find_one(struct doomed *doomed, const char *uid)
{
    muster_auto(free) char *path = doomed_path(doomed, uid, MARK);
    muster_auto(free) char *lease = NULL;
    struct muster_err err = {0};
    if (!path || file_read(path, LEASE_BYTES_MAX, &lease, NULL, NULL) < 0) {
        find_unmarked(doomed, uid);
        return;
    }
    if (archive_finish(doomed->home, uid, &err) < 0) {
        log_event(LOG_WARN, "history.finish", "%s", err.text);
        return; /* its folder stays until a controller can */
    }
    add(doomed, uid, lease);
}

void doomed_find(struct doomed *doomed)
{
    muster_auto(free) char *folder = home_file(doomed->home, "jobs");
    DIR *entries = folder ? opendir(folder) : NULL;
    for (struct dirent *e = entries ? readdir(entries) : NULL; e; e = readdir(entries)) {
        if (*e->d_name != '.') {
            find_one(doomed, e->d_name);
        }
    }
    if (entries) {
        closedir(entries);
    }
}

int64_t doomed_next_run(const struct doomed *doomed, const char *namespace, const char *name)
{
    int64_t last = history_last(doomed->home, namespace, name);
    const char *uid;
    json_t *entry;
    json_object_foreach (doomed->uids, uid, entry) {
        int64_t run = doc_int(entry, "run", 0);
        bool same = strcmp(doc_text(entry, "namespace", ""), namespace) == 0 &&
                    strcmp(doc_text(entry, "name", ""), name) == 0;
        last = same && run > last ? run : last;
    }
    return last + 1;
}

json_t *doomed_pending(const struct doomed *doomed, const char *namespace, const char *name)
{
    muster_auto(doc) json_t *list = json_array();
    const char *uid;
    json_t *entry;
    json_object_foreach (doomed->uids, uid, entry) {
        bool wanted = doc_int(entry, "run", 0) > 0 &&
                      (!namespace || strcmp(doc_text(entry, "namespace", ""), namespace) == 0) &&
                      (!name || strcmp(doc_text(entry, "name", ""), name) == 0);
        json_t *record = wanted ? archive_pending(doomed->home, uid) : NULL;
        if (record) {
            json_array_append_new(list, record);
        }
    }
    return muster_take(list);
}
