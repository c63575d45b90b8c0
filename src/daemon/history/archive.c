/* See archive.h. */
#include "daemon/history/archive.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/file.h"
#include "base/time/clock.h"
#include "daemon/history/deleted_pods.h"
#include "daemon/history/paths.h"
#include "daemon/history/summary.h"
#include "daemon/history/trim.h"
#include "job/annotations.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RECORD "record.json"
#define ARCHIVE "archive"

enum { RECORD_BYTES_MAX = 256 << 20, SUMMARY_BYTES_MAX = 4 << 20, SELECTOR_BYTES = 128 };

struct archive_task {
    char *folder; /* jobs/UID */
    char *target; /* history/NS/JOB/RUN */
    char *job;    /* content of the files; texts, so that a thread may write them */
    char *pods;
    char *events;
    json_t *summary; /* only the task has a reference */
};

static char *job_file(const struct home *home, const char *uid, const char *name)
{
    char *path = NULL;
    return asprintf(&path, "%s/jobs/%s%s%s", home->path, uid, *name ? "/" : "", name) < 0 ? NULL
                                                                                          : path;
}

static int read_doc(const char *path, size_t max_bytes, json_t **ret)
{
    muster_auto(free) char *text = NULL;
    size_t bytes = 0;
    int r = path ? file_read(path, max_bytes, &text, &bytes, NULL) : MUSTER_ENOMEM;
    return r < 0 ? r : doc_parse(text, bytes, ret, NULL);
}

/* ---- The record ---- */

static int owned_pods(struct store *store, const json_t *job, json_t **ret, struct muster_err *err)
{
    struct store_page page = {0};
    const struct store_query query = {.resource = "pods",
                                      .namespace = doc_text(job, "metadata.namespace", ""),
                                      .owner_uid = doc_text(job, "metadata.uid", "")};
    int r = store_list(store, &query, &page, err);
    if (r == 0) {
        *ret = json_incref(page.items);
        store_page_done(&page);
    }
    return r;
}

int archive_record(const struct home *home, struct store *store, const json_t *job, int64_t run,
                   struct muster_err *err)
{
    const char *uid = doc_text(job, "metadata.uid", "");
    muster_auto(free) char *folder = job_file(home, uid, "");
    muster_auto(free) char *path = job_file(home, uid, RECORD);
    muster_auto(doc) json_t *pods = NULL;
    int r = folder && path ? file_mkdir(folder, 0700, err) : err_no_memory(err);
    r = r < 0 ? r : owned_pods(store, job, &pods, err);
    if (r < 0) {
        return r;
    }
    muster_auto(doc) json_t *record =
        json_pack("{s:I, s:O, s:O}", "run", (json_int_t)run, "job", job, "pods", pods);
    muster_auto(free) char *text = record ? doc_print(record) : NULL;
    /* Not synced: a power cut that loses the file loses the deletion too (store.h). */
    return text ? file_put(path, text, strlen(text), 0600, err) : err_no_memory(err);
}

/* Returns the index of the pod with this uid; the length of the list if there is none. */
static size_t find_uid(const json_t *pods, const char *uid)
{
    size_t i;
    json_t *pod;
    json_array_foreach (pods, i, pod) {
        if (strcmp(doc_text(pod, "metadata.uid", ""), uid) == 0) {
            return i;
        }
    }
    return json_array_size(pods);
}

/* Replaces or adds the pods that the agent kept: these are newer than what the record has of
 * them. */
static void merge_remains(const struct home *home, const char *uid, json_t *pods)
{
    muster_auto(doc) json_t *kept = deleted_pods_list(home, uid);
    size_t i;
    json_t *pod;
    json_array_foreach (kept, i, pod) {
        size_t place = find_uid(pods, doc_text(pod, "metadata.uid", ""));
        if (place < json_array_size(pods)) {
            json_array_set(pods, place, pod);
        } else {
            json_array_append(pods, pod);
        }
    }
}

json_t *archive_pending(const struct home *home, const char *uid)
{
    muster_auto(free) char *path = job_file(home, uid, RECORD);
    json_t *record = NULL;
    if (read_doc(path, RECORD_BYTES_MAX, &record) < 0) {
        return NULL;
    }
    merge_remains(home, uid, doc_at(record, "pods"));
    return record;
}

json_t *archive_pending_pod(const struct home *home, const char *pod_uid)
{
    muster_auto(free) char *jobs = home_file(home, "jobs");
    json_t *pod = NULL;
    DIR *entries = jobs ? opendir(jobs) : NULL;
    for (struct dirent *e = entries ? readdir(entries) : NULL; e && !pod; e = readdir(entries)) {
        muster_auto(doc) json_t *record =
            *e->d_name != '.' ? archive_pending(home, e->d_name) : NULL;
        json_t *pods = doc_at(record, "pods");
        pod = json_incref(json_array_get(pods, find_uid(pods, pod_uid)));
    }
    if (entries) {
        closedir(entries);
    }
    return pod;
}

int archive_forget(const struct home *home, const char *uid, struct muster_err *err)
{
    muster_auto(free) char *record = job_file(home, uid, RECORD);
    muster_auto(free) char *archive = job_file(home, uid, ARCHIVE);
    int r = record && archive ? file_remove(record, err) : err_no_memory(err);
    return r < 0 ? r : file_remove(archive, err);
}

/* ---- The task ---- */

/* Lists the events of the job and its pods. */
static int list_events(struct store *store, const char *uid, struct store_page *ret,
                       struct muster_err *err)
{
    char text[SELECTOR_BYTES];
    struct selector labels = {0};
    snprintf(text, sizeof text, "%s=%s", JOB_LABEL_EVENT, uid);
    int r = selector_parse_labels(text, &labels, err);
    const struct store_query query = {.resource = "events", .labels = &labels};
    r = r < 0 ? r : store_list(store, &query, ret, err);
    selector_done(&labels);
    return r;
}

json_t *archive_events(struct store *store, const char *uid)
{
    struct store_page page = {0};
    json_t *events = list_events(store, uid, &page, NULL) == 0 ? json_incref(page.items) : NULL;
    store_page_done(&page);
    return events;
}

int archive_remove_events(struct store *store, const char *uid, struct muster_err *err)
{
    struct store_page page = {0};
    int r = list_events(store, uid, &page, err);
    r = r < 0 ? r : store_begin(store, err);
    if (r < 0) {
        store_page_done(&page);
        return r;
    }
    size_t i;
    json_t *event;
    json_array_foreach (page.items, i, event) {
        const struct store_key key = {"events", doc_text(event, "metadata.namespace", ""),
                                      doc_text(event, "metadata.name", "")};
        r = r < 0 ? r : store_delete(store, key, NULL, NULL, err);
    }
    store_page_done(&page);
    int committed = store_commit(store, r < 0 ? NULL : err);
    return r < 0 ? r : committed;
}

static int fill(struct archive_task *task, const struct home *home, struct store *store,
                const json_t *record, struct muster_err *err)
{
    const json_t *job = doc_at(record, "job");
    const json_t *pods = doc_at(record, "pods");
    const struct history_run run = {doc_text(job, "metadata.namespace", ""),
                                    doc_text(job, "metadata.name", ""), doc_int(record, "run", 1)};
    struct store_page events = {0};
    int r = list_events(store, doc_text(job, "metadata.uid", ""), &events, err);
    if (r < 0) {
        return r;
    }
    task->job = doc_print_pretty(job);
    task->pods = doc_print_pretty(pods);
    task->events = doc_print_pretty(events.items);
    store_page_done(&events);
    task->summary = history_summary(job, pods, run.run, clock_unix_ms());
    if (!task->job || !task->pods || !task->events || !task->summary) {
        return err_no_memory(err);
    }
    return history_path(home, &run, &task->target, err);
}

struct archive_task *archive_task_new(const struct home *home, struct store *store, const char *uid,
                                      struct muster_err *err)
{
    muster_auto(doc) json_t *record = archive_pending(home, uid);
    struct archive_task *task = record ? calloc(1, sizeof *task) : NULL;
    if (!task) {
        return NULL;
    }
    task->folder = job_file(home, uid, "");
    int r = task->folder ? fill(task, home, store, record, err) : err_no_memory(err);
    if (r < 0) {
        archive_task_free(task);
        return NULL;
    }
    return task;
}

void archive_task_free(struct archive_task *task)
{
    if (task) {
        json_decref(task->summary);
        free(task->folder);
        free(task->target);
        free(task->job);
        free(task->pods);
        free(task->events);
        free(task);
    }
}

static int write_text(const char *folder, const char *name, const char *text,
                      struct muster_err *err)
{
    muster_auto(free) char *path = text ? file_join(folder, name) : NULL;
    return path ? file_write(path, text, strlen(text), 0600, err) : err_no_memory(err);
}

/* Trims the logs. They may be in the archive already, if an earlier controller was killed at this
 * point. */
static int trim(struct archive_task *task, const char *archive, int64_t bytes_max,
                struct muster_err *err)
{
    muster_auto(free) char *logs = file_join(task->folder, "containers");
    muster_auto(free) char *moved = file_join(archive, "logs");
    if (!logs || !moved) {
        return err_no_memory(err);
    }
    int64_t own = (int64_t)(strlen(task->job) + strlen(task->pods) + strlen(task->events));
    struct history_size size = {0};
    int r = history_trim(file_exists(moved) ? moved : logs, bytes_max - own, &size, err);
    r = r < 0 ? r : doc_set_int(task->summary, "bytes", own + size.bytes);
    return r < 0 ? r : doc_set_int(task->summary, "logBytesDropped", size.dropped);
}

int archive_prepare(struct archive_task *task, int64_t bytes_max, struct muster_err *err)
{
    muster_auto(free) char *archive = file_join(task->folder, ARCHIVE);
    int r = archive ? file_mkdir(archive, 0700, err) : err_no_memory(err);
    r = r < 0 ? r : trim(task, archive, bytes_max, err);
    r = r < 0 ? r : write_text(archive, "job.json", task->job, err);
    r = r < 0 ? r : write_text(archive, "pods.json", task->pods, err);
    r = r < 0 ? r : write_text(archive, "events.json", task->events, err);
    if (r < 0) {
        return r;
    }
    muster_auto(free) char *summary = doc_print_pretty(task->summary);
    return write_text(archive, "summary.json", summary, err);
}

/* Renames a folder. If `from` does not exist, the job has no containers, or it was renamed
 * before. */
static int move(const char *from, const char *to, struct muster_err *err)
{
    if (!from || !to) {
        return err_no_memory(err);
    }
    return rename(from, to) == 0 || errno == ENOENT ? 0
                                                    : file_fail(err, MUSTER_ECREATE, "make", to);
}

static int make_parent(const char *path, struct muster_err *err)
{
    muster_auto(free) char *parent = strdup(path);
    char *slash = parent ? strrchr(parent, '/') : NULL;
    if (!slash) {
        return err_no_memory(err);
    }
    *slash = '\0';
    return file_mkdir(parent, 0700, err);
}

static int publish(const char *folder, const char *target, struct muster_err *err)
{
    muster_auto(free) char *archive = file_join(folder, ARCHIVE);
    int r = make_parent(target, err);
    return r < 0 ? r : move(archive, target, err);
}

int archive_publish(struct archive_task *task, struct muster_err *err)
{
    muster_auto(free) char *from = file_join(task->folder, "containers");
    muster_auto(free) char *to = file_join(task->folder, ARCHIVE "/logs");
    muster_auto(free) char *record = file_join(task->folder, RECORD);
    int r = move(from, to, err);
    if (r == 0 && (!record || (unlink(record) < 0 && errno != ENOENT))) {
        r = file_fail(err, MUSTER_EIO, "remove", record ? record : RECORD);
    }
    return r < 0 ? r : publish(task->folder, task->target, err);
}

int archive_finish(const struct home *home, const char *uid, struct muster_err *err)
{
    muster_auto(free) char *folder = job_file(home, uid, "");
    muster_auto(free) char *record = job_file(home, uid, RECORD);
    muster_auto(free) char *path = job_file(home, uid, ARCHIVE "/summary.json");
    muster_auto(free) char *target = NULL;
    muster_auto(doc) json_t *summary = NULL;
    if (!folder || !record || !path) {
        return err_no_memory(err);
    }
    if (file_exists(record) || read_doc(path, SUMMARY_BYTES_MAX, &summary) < 0) {
        return 0;
    }
    const struct history_run run = {doc_text(summary, "namespace", ""),
                                    doc_text(summary, "name", ""), doc_int(summary, "run", 1)};
    int r = history_path(home, &run, &target, err);
    return r < 0 ? r : publish(folder, target, err);
}
