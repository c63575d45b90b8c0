/* See retire.h. */
#include "daemon/history/retire.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "daemon/history/prune.h"
#include "daemon/object/jobs.h"
#include "job/annotations.h"
#include "job/job.h"

#include <stdlib.h>
#include <string.h>

enum { JOBS_DEFAULT = 100 };

int64_t retire_limit(void)
{
    return history_setting("MUSTER_FINISHED_JOBS", JOBS_DEFAULT);
}

static bool is_ours(const json_t *job)
{
    return jobs_annotation(job, JOB_ANNOTATION_LEASE) && job_is_finished(job);
}

/* Newest first, by the end in whole seconds, then by the version. */
static int by_end(const void *left, const void *right)
{
    const json_t *a = *(json_t *const *)left;
    const json_t *b = *(json_t *const *)right;
    int order =
        strcmp(doc_text(b, "status.completionTime", ""), doc_text(a, "status.completionTime", ""));
    return order ? order : doc_compare_versions(b, a);
}

static int delete_job(struct store *store, const json_t *job, struct muster_err *err)
{
    const struct store_key key = {"pytorchjobs", doc_text(job, "metadata.namespace", ""),
                                  doc_text(job, "metadata.name", "")};
    const struct store_delete_options options = {.uid = doc_text(job, "metadata.uid", NULL),
                                                 .grace_s = STORE_GRACE_DEFAULT};
    int r = store_delete(store, key, &options, NULL, err);
    return r == MUSTER_ENOENT || r == MUSTER_ECONFLICT ? 0 : r; /* others deleted or changed it */
}

static int delete_older(struct store *store, const struct leases *leases, json_t **list,
                        size_t count, int64_t limit, struct muster_err *err)
{
    int r = 0;
    qsort(list, count, sizeof *list, by_end);
    for (size_t i = (size_t)limit; i < count && r == 0; i++) {
        if (!leases_is_open(leases, jobs_annotation(list[i], JOB_ANNOTATION_LEASE))) {
            r = delete_job(store, list[i], err);
        }
    }
    return r;
}

int retire_jobs(struct store *store, const struct leases *leases, int64_t limit,
                struct muster_err *err)
{
    struct store_page page = {0};
    int r = store_list(store, &(struct store_query){.resource = "pytorchjobs"}, &page, err);
    if (r < 0) {
        return r;
    }
    muster_auto(free) json_t **list = calloc(json_array_size(page.items) + 1, sizeof(json_t *));
    size_t count = 0, i;
    json_t *job;
    json_array_foreach (page.items, i, job) {
        if (list && is_ours(job)) {
            list[count++] = job;
        }
    }
    r = list ? delete_older(store, leases, list, count, limit, err) : err_no_memory(err);
    store_page_done(&page);
    return r;
}
