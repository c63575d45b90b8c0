/* See leases.h. */
#include "daemon/object/leases.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/log.h"
#include "daemon/object/jobs.h"
#include "job/annotations.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <uthash.h>

enum { ORPHAN_GRACE_S = 1 };

struct lease {
    char *id;
    size_t connections;
    UT_hash_handle hh;
};

struct leases {
    struct store *store;
    struct lease *open;
    uv_timer_t reconnect; /* runs once, after the start */
};

static struct lease *find(const struct leases *leases, const char *id)
{
    struct lease *lease = NULL;
    HASH_FIND_STR(leases->open, id, lease);
    return lease;
}

bool leases_is_open(const struct leases *leases, const char *id)
{
    return find(leases, id) != NULL;
}

void leases_opened(struct leases *leases, const char *id)
{
    struct lease *lease = find(leases, id);
    if (!lease) {
        lease = calloc(1, sizeof *lease);
        char *copy = strdup(id);
        if (!lease || !copy) {
            free(lease);
            free(copy);
            return;
        }
        lease->id = copy;
        HASH_ADD_KEYPTR(hh, leases->open, lease->id, strlen(lease->id), lease);
    }
    lease->connections++;
}

/* Deletes the pods that still run, also those of a finished job, which may have left ranks running
 * (cleanPodPolicy None). */
static int delete_live_pods(struct store *store, const json_t *job, int64_t grace_s,
                            struct muster_err *err)
{
    const struct store_delete_options options = {.grace_s = grace_s};
    struct store_page page = {0};
    const struct store_query query = {.resource = "pods",
                                      .namespace = doc_text(job, "metadata.namespace", ""),
                                      .owner_uid = doc_text(job, "metadata.uid", "")};
    int r = store_list(store, &query, &page, err);
    size_t i;
    json_t *pod;
    json_array_foreach (page.items, i, pod) {
        const char *phase = doc_text(pod, "status.phase", "");
        if (strcmp(phase, "Succeeded") != 0 && strcmp(phase, "Failed") != 0) {
            const struct store_key key = {"pods", query.namespace,
                                          doc_text(pod, "metadata.name", "")};
            int one = store_delete(store, key, &options, NULL, err);
            r = r < 0 || one == MUSTER_ENOENT ? r : one; /* gone already: no error */
        }
    }
    store_page_done(&page);
    return r;
}

int leases_stop_job(struct store *store, const json_t *job, const char *why, struct muster_err *err)
{
    if (jobs_is_finished(job)) {
        return delete_live_pods(store, job, STORE_GRACE_DEFAULT, err);
    }
    if (jobs_annotation(job, JOB_ANNOTATION_STOP)) {
        return 0;
    }
    muster_auto(doc) json_t *note = json_pack("{s:s}", JOB_ANNOTATION_STOP, why);
    muster_auto(doc) json_t *changed = note ? jobs_annotated(job, note) : NULL;
    if (!changed) {
        return err_no_memory(err);
    }
    json_object_del(doc_at(changed, "metadata"),
                    "resourceVersion"); /* the job must stop, whatever else changed in it */
    return store_update(store, "pytorchjobs", changed, STORE_BUT_STATUS, NULL, err);
}

/* Ends a job whose ranks nobody waits for any more: they get one second to end, whatever their
 * grace period is. */
static void end_job(struct store *store, const json_t *job, const char *why)
{
    struct muster_err err = MUSTER_ERR_INIT;
    int r = leases_stop_job(store, job, why, &err);
    int pods = delete_live_pods(store, job, ORPHAN_GRACE_S, &err);
    if (r < 0 || pods < 0) {
        log_event(LOG_ERROR, "lease.stop", "%s: %s", doc_text(job, "metadata.name", "?"), err.text);
    }
}

/* Whether a lease is over. */
typedef bool (*over_fn)(const struct leases *leases, const char *lease, const char *id);

static bool is_that(const struct leases *leases, const char *lease, const char *id)
{
    (void)leases;
    return strcmp(lease, id) == 0;
}

static bool nobody_holds(const struct leases *leases, const char *lease, const char *id)
{
    (void)id;
    return !leases_is_open(leases, lease);
}

/* Whether the lease is "run-PID-…" and no process has this number. If the number is used again, the
 * lease is treated as one whose holder may come back. */
static bool holder_is_dead(const struct leases *leases, const char *lease, const char *id)
{
    (void)leases;
    (void)id;
    int pid = 0;
    return sscanf(lease, "run-%d-", &pid) == 1 && pid > 0 && kill(pid, 0) < 0 && errno == ESRCH;
}

static void end_jobs(struct leases *leases, over_fn is_over, const char *id, const char *why)
{
    struct store_page page = {0};
    struct muster_err err = MUSTER_ERR_INIT;
    const struct store_query query = {.resource = "pytorchjobs"};
    if (store_list(leases->store, &query, &page, &err) < 0) {
        log_event(LOG_ERROR, "lease.list", "%s", err.text);
        return;
    }
    size_t i;
    json_t *job;
    json_array_foreach (page.items, i, job) {
        const char *held = jobs_annotation(job, JOB_ANNOTATION_LEASE);
        if (held && is_over(leases, held, id)) {
            end_job(leases->store, job, why);
        }
    }
    store_page_done(&page);
}

void leases_closed(struct leases *leases, const char *id)
{
    struct lease *lease = find(leases, id);
    if (!lease || --lease->connections > 0) {
        return;
    }
    end_jobs(leases, is_that, id, "the muster run that started it went away");
    HASH_DEL(leases->open, lease);
    free(lease->id);
    free(lease);
}

static void on_reconnect_over(uv_timer_t *timer)
{
    end_jobs(timer->data, nobody_holds, NULL, "the muster run that started it did not come back");
}

int leases_new(uv_loop_t *loop, struct store *store, struct leases **ret, struct muster_err *err)
{
    struct leases *leases = calloc(1, sizeof *leases);
    if (!leases) {
        return err_no_memory(err);
    }
    leases->store = store;
    leases->reconnect.data = leases;
    uv_timer_init(loop, &leases->reconnect);
    uv_timer_start(&leases->reconnect, on_reconnect_over, LEASES_RECONNECT_MS, 0);
    end_jobs(leases, holder_is_dead, NULL, "the muster run that started it is gone");
    *ret = leases;
    return 0;
}

static void free_self(uv_handle_t *handle)
{
    free(handle->data);
}

struct leases *leases_free(struct leases *leases)
{
    if (!leases) {
        return NULL;
    }
    struct lease *lease, *next;
    HASH_ITER (hh, leases->open, lease, next) {
        HASH_DEL(leases->open, lease);
        free(lease->id);
        free(lease);
    }
    uv_close((uv_handle_t *)&leases->reconnect, free_self);
    return NULL;
}
