/* See sweep.h. */
#include "daemon/history/sweep.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/time/clock.h"
#include "daemon/history/archive.h"
#include "daemon/history/paths.h"
#include "daemon/history/prune.h"
#include "daemon/history/removal_list.h"
#include "daemon/history/retire.h"
#include "daemon/object/jobs.h"
#include "job/annotations.h"
#include "job/job.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { RETRY_MS = 10000 };

/* The work of the thread: first a folder's archive, then its removal. */
struct work {
    uv_work_t request;
    struct sweep *sweep;
    char *uid;                 /* NULL: only apply the history's limits */
    char *folder;              /* jobs/UID */
    struct archive_task *task; /* NULL: nothing of it must be kept */
    int r;
    struct muster_err err;
};

struct sweep {
    uv_loop_t *loop;
    struct store *store;
    const struct home *home;
    const struct leases *leases;
    struct history_limits limits;
    struct store_watch *watch;
    struct removal_list removals;
    struct work *work; /* what the thread works on, or NULL */
    int64_t jobs_max;  /* limit for finished jobs that `muster run` made */
    bool jobs_came;    /* jobs were added since the last count */
    bool closing;
};

/* ---- Which folders ---- */

/* Adds the folder of a deleted job. A pod without a job has a folder of its own
 * (jobs_folder_uid). */
static void on_change(void *arg, const struct store_change *change)
{
    struct sweep *sweep = arg;
    bool job = strcmp(change->key.resource, "pytorchjobs") == 0;
    bool pod = strcmp(change->key.resource, "pods") == 0;
    if (job && change->kind == STORE_ADDED &&
        jobs_annotation(change->object, JOB_ANNOTATION_LEASE)) {
        sweep->jobs_came = true;
    }
    if (change->kind == STORE_DELETED && (job || (pod && !jobs_owner(change->object)))) {
        const char *uid = doc_text(change->object, "metadata.uid", "");
        const char *lease = jobs_annotation(change->object, JOB_ANNOTATION_LEASE);
        removal_list_add(&sweep->removals, uid, lease ? lease : "");
    }
}

int64_t sweep_next_run(const struct sweep *sweep, const char *namespace, const char *name)
{
    return removal_list_next_run(&sweep->removals, namespace, name);
}

json_t *sweep_pending(const struct sweep *sweep, const char *namespace, const char *name)
{
    return removal_list_pending(&sweep->removals, namespace, name);
}

/* Whether the history keeps anything; MUSTER_HISTORY_RUNS=0 switches it off. */
static bool keeps_runs(const struct sweep *sweep)
{
    return sweep->limits.runs_per_name > 0 && sweep->limits.bytes > 0;
}

/* Records a job before it is deleted. The deletion goes on if this fails: on a full disk it may be
 * what makes room. */
static void on_delete(void *arg, const char *resource, const json_t *object)
{
    struct sweep *sweep = arg;
    struct muster_err err = MUSTER_ERR_INIT;
    if (strcmp(resource, "pytorchjobs") != 0 || !job_is_finished(object) || !keeps_runs(sweep)) {
        return;
    }
    const char *name = doc_text(object, "metadata.name", "");
    int64_t run = sweep_next_run(sweep, doc_text(object, "metadata.namespace", ""), name);
    if (archive_record(sweep->home, sweep->store, object, run, &err) < 0) {
        log_event(LOG_WARN, "history.record", "job %s is deleted and not kept: %s", name, err.text);
    }
}

/* ---- The thread ---- */

static void done(uv_work_t *request, int status);

/* The other folders are handled meanwhile. */
static void retry_later(const struct work *work)
{
    json_t *entry = work->uid ? json_object_get(work->sweep->removals.uids, work->uid) : NULL;
    log_event(LOG_WARN, "history.archive", "%s: %s; tried again in %d s",
              doc_text(entry, "name", "?"), work->err.text, RETRY_MS / 1000);
    if (entry) {
        (void)doc_set_int(entry, "retryMs", clock_ms() + RETRY_MS);
    }
}

static void start(struct work *work, uv_work_cb step)
{
    work->request.data = work;
    work->sweep->work = work;
    int r = uv_queue_work(work->sweep->loop, &work->request, step, done);
    assert(r == 0);
    (void)r;
}

static void prepare(uv_work_t *request)
{
    struct work *work = request->data;
    work->r = archive_prepare(work->task, work->sweep->limits.bytes / 2, &work->err);
}

static void remove_folder(uv_work_t *request)
{
    struct work *work = request->data;
    const struct sweep *sweep = work->sweep;
    history_empty_trash(sweep->home);
    work->r =
        work->folder ? history_throw_away(sweep->home, work->folder, work->uid, &work->err) : 0;
    int r = history_prune(sweep->home, &sweep->limits, &work->err);
    work->r = work->r < 0 ? work->r : r;
}

static void free_sweep(struct sweep *sweep)
{
    json_decref(sweep->removals.uids);
    free(sweep);
}

static void free_work(struct work *work)
{
    struct sweep *sweep = work->sweep;
    sweep->work = NULL;
    archive_task_free(work->task);
    free(work->uid);
    free(work->folder);
    free(work);
    if (sweep->closing) {
        free_sweep(sweep);
    }
}

/* Removes the job's events from the store: they are in the history now. */
static void remove_events(struct sweep *sweep, const char *uid)
{
    struct muster_err err = MUSTER_ERR_INIT;
    if (archive_remove_events(sweep->store, uid, &err) < 0) {
        log_event(LOG_WARN, "history.events", "%s", err.text);
    }
}

/* Continues after the archive was made, or if there is none: renames it, then removes the rest of
 * the folder. */
static void go_on(struct work *work)
{
    struct sweep *sweep = work->sweep;
    if (work->r == 0 && work->task) {
        work->r = archive_publish(work->task, &work->err);
    }
    if (work->r < 0) {
        retry_later(work);
        free_work(work);
        return;
    }
    remove_events(sweep, work->uid);
    archive_task_free(work->task);
    work->task = NULL;
    start(work, remove_folder);
}

static void done(uv_work_t *request, int status)
{
    struct work *work = request->data;
    struct sweep *sweep = work->sweep;
    (void)status;
    if (sweep->closing) {
        free_work(work);
        return;
    }
    if (work->task) {
        go_on(work);
        return;
    }
    if (work->r < 0) {
        log_event(LOG_WARN, "sweep", "%s", work->err.text);
    }
    if (work->uid) {
        json_object_del(sweep->removals.uids, work->uid);
    }
    free_work(work);
    sweep_look(sweep);
}

/* ---- Choosing a folder ---- */

static bool has_pods(const struct sweep *sweep, const char *uid)
{
    const struct store_query pods = {.resource = "pods", .owner_uid = uid, .limit = 1};
    struct store_page page;
    if (store_list(sweep->store, &pods, &page, NULL) < 0) {
        return true; /* without an answer the folder waits */
    }
    bool some = json_array_size(page.items) > 0;
    store_page_done(&page);
    return some;
}

/* Whether a process works in the folder: supervisor and monitors hold its lock as long as they
 * live. */
static bool in_use(const struct sweep *sweep, const char *uid)
{
    muster_auto(free) char *path = removal_list_path(&sweep->removals, uid, "/lock");
    muster_auto(close) int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    return fd >= 0 ? flock(fd, LOCK_EX | LOCK_NB) < 0 : errno != ENOENT;
}

static void begin(struct sweep *sweep, const char *uid)
{
    struct work *work = calloc(1, sizeof *work);
    if (!work) {
        return;
    }
    work->sweep = sweep;
    work->uid = strdup(uid);
    work->folder = removal_list_path(&sweep->removals, uid, "");
    work->task = archive_task_new(sweep->home, sweep->store, uid, &work->err);
    if (!work->uid || !work->folder || work->err.code < 0) {
        retry_later(work);
        free_work(work);
        return;
    }
    start(work, work->task ? prepare : remove_folder);
}

static void retire(struct sweep *sweep)
{
    struct muster_err err = MUSTER_ERR_INIT;
    sweep->jobs_came = false;
    if (retire_jobs(sweep->store, sweep->leases, sweep->jobs_max, &err) < 0) {
        log_event(LOG_WARN, "history.retire", "%s", err.text);
    }
}

void sweep_look(struct sweep *sweep)
{
    if (sweep->jobs_came && keeps_runs(sweep)) {
        retire(sweep);
    }
    if (sweep->work) {
        return;
    }
    const char *uid;
    json_t *entry;
    json_object_foreach (sweep->removals.uids, uid, entry) {
        if (clock_ms() >= doc_int(entry, "retryMs", 0) &&
            !leases_is_open(sweep->leases, doc_text(entry, "lease", "")) && !has_pods(sweep, uid) &&
            !in_use(sweep, uid)) {
            begin(sweep, uid);
            return;
        }
    }
}

/* ---- Life ---- */

/* Applies the limits once at the start: they may differ from those of the last controller, or it
 * was killed while it applied them. */
static void look_after_limits(struct sweep *sweep)
{
    struct work *work = calloc(1, sizeof *work);
    if (work) {
        work->sweep = sweep;
        start(work, remove_folder);
    }
}

int sweep_new(uv_loop_t *loop, struct store *store, const struct home *home,
              const struct leases *leases, struct sweep **ret, struct muster_err *err)
{
    struct sweep *sweep = calloc(1, sizeof *sweep);
    json_t *uids = json_object();
    if (!sweep || !uids) {
        free(sweep);
        json_decref(uids);
        return err_no_memory(err);
    }
    *sweep = (struct sweep){.loop = loop,
                            .store = store,
                            .home = home,
                            .leases = leases,
                            .limits = history_limits_read(),
                            .removals = {home, store, uids},
                            .jobs_max = retire_limit(),
                            .jobs_came = true};
    const struct store_watch_options everything = {.after_version = STORE_FROM_NOW};
    int r = store_watch(store, &everything, on_change, sweep, &sweep->watch, err);
    if (r < 0) {
        sweep_free(sweep);
        return r;
    }
    store_on_delete(store, on_delete, sweep);
    removal_list_find(&sweep->removals);
    look_after_limits(sweep);
    *ret = sweep;
    return 0;
}

struct sweep *sweep_free(struct sweep *sweep)
{
    if (sweep) {
        if (sweep->watch) {
            store_on_delete(sweep->store, NULL, NULL);
            store_unwatch(sweep->watch);
        }
        sweep->closing = true;
        if (!sweep->work) {
            free_sweep(sweep);
        }
    }
    return NULL;
}
