/* The functions of muster/elastic.h for a job: opening, leaving, closing, its state, and queries.
 * Those for its passes are in pass.c. Layer: worker (part of libmuster). Thread: the user's; query
 * and leave: any.
 */
#include "client/generation.h"
#include "client/obey.h"
#include "client/open.h"
#include "client/report.h"
#include "client/saver.h"
#include "client/uplink.h"
#include "comm/region/region.h"
#include "comm/system/deadline.h"
#include "comm/system/sized.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CLOSE_MS = 2000, FLUSH_MS = 1000 };

static const struct sized_kind sized_elastic_options =
                                   SIZED_KIND(muster_elastic_options, MUSTER_ELASTIC_OPTIONS_INIT),
                               sized_info =
                                   SIZED_KIND(muster_elastic_info, MUSTER_ELASTIC_INFO_INIT);

/* ---- Opening and closing ---- */

/* Waits until the connection is up, with an agreement about the data set. */
static int wait_for_coordinator(struct muster_elastic *job, int64_t connect_ms,
                                struct muster_err *err)
{
    int64_t end_ns = deadline_after_ms(connect_ms);
    int r = 0;
    pthread_mutex_lock(&job->mutex);
    while (r == 0 && !job->settled && job->end == WORKER_GOES_ON) {
        r = worker_now_ns() < end_ns
                ? worker_wait(job, err)
                : muster_fail(err, MUSTER_EUNAVAIL, "%s (%s)",
                              job->why.code < 0 ? job->why.text : "the coordinator is silent",
                              job->coordinator);
    }
    if (r == 0 && job->end != WORKER_GOES_ON) {
        r = muster_fail(err, job->why.code, "%s", job->why.text);
    }
    pthread_mutex_unlock(&job->mutex);
    return r;
}

static int allocate(struct muster_elastic *job, struct muster_err *err)
{
    job->records = malloc(job->plan.batch * sizeof *job->records);
    return job->records ? generation_make_room(job, &job->plan, err)
                        : muster_fail(err, MUSTER_ENOMEM, "no memory for a job");
}

int muster_elastic_open(const struct muster_elastic_options *options, struct muster_elastic **ret,
                        struct muster_err *err)
{
    struct muster_elastic_options own = MUSTER_ELASTIC_OPTIONS_INIT;
    struct muster_elastic *job = NULL;
    int r = sized_check_err(err);
    r = r < 0 ? r : sized_read(&sized_elastic_options, &own, options, err);
    r = r < 0 ? r : open_job(&own, &job, err);
    if (r < 0) {
        return r;
    }
    r = uplink_start(job, err);
    if (r < 0) {
        open_free(job);
        return r;
    }
    r = wait_for_coordinator(job, own.connect_ms, err);
    r = r < 0 ? r : allocate(job, err);
    r = r < 0 ? r : saver_start(job, err);
    if (r < 0) {
        uplink_stop(job, 0);
        open_free(job);
        return r;
    }
    *ret = job;
    return 0;
}

/* Closes the generation of this worker and reports it, so that the others need not wait until they
 * find it silent. */
static void leave_job(struct muster_elastic *job)
{
    int64_t end_ns = worker_now_ns() + CLOSE_MS * INT64_C(1000000);
    pthread_mutex_lock(&job->mutex);
    if (job->joins && job->end == WORKER_GOES_ON) {
        job->told_leave = true;
        job->broken_off = !atomic_load(&job->leave_asked);
        obey_own(job, COMMIT_LEAVE, 0);
        obey_lost(job, 0, false);
        obey_abort(job);
    }
    while (job->joins && job->end == WORKER_GOES_ON && job->core.connected &&
           worker_now_ns() < end_ns) {
        (void)worker_wait(job, NULL);
    }
    generation_leave(job);
    pthread_mutex_unlock(&job->mutex);
}

int muster_elastic_fail(struct muster_elastic *job, const char *why, struct muster_err *err)
{
    char text[WORKER_WHY_BYTES + 1];
    int64_t end_ns = worker_now_ns() + CLOSE_MS * INT64_C(1000000);
    int r = worker_check_own(job, err);
    if (r < 0) {
        return r;
    }
    (void)snprintf(text, sizeof text, "%.300s: %s", job->name, why ? why : "it does not say why");
    pthread_mutex_lock(&job->mutex);
    do { /* an interruption ends nothing here: it may be the error */
        r = report_until_ended(job, text, end_ns, err);
    } while (r == MUSTER_EINTERRUPTED);
    pthread_mutex_unlock(&job->mutex);
    return r;
}

void muster_elastic_close(struct muster_elastic *job)
{
    if (!job || job->owner != getpid()) {
        return; /* a forked child owns nothing of the job */
    }
    saver_stop(job);
    leave_job(job);
    uplink_stop(job, FLUSH_MS);
    open_free(job);
}

/* ---- The state ---- */

static int check_pieces(const struct muster_elastic_piece *pieces, size_t num_pieces,
                        struct muster_err *err)
{
    if (num_pieces > WORKER_PIECES_MAX) {
        return muster_fail(err, MUSTER_EINVAL, "a state has at most %d pieces", WORKER_PIECES_MAX);
    }
    if (num_pieces > 0 && !pieces) {
        return muster_fail(err, MUSTER_EINVAL, "the pieces of the state are NULL");
    }
    for (size_t i = 0; i < num_pieces; i++) {
        if (!pieces[i].memory && pieces[i].size_bytes > 0) {
            return muster_fail(err, MUSTER_EINVAL, "piece %zu of the state has no memory", i);
        }
    }
    return 0;
}

int muster_elastic_state(struct muster_elastic *job, const struct muster_elastic_piece *pieces,
                         size_t num_pieces, struct muster_err *err)
{
    int r = worker_check_own(job, err);
    r = r < 0 ? r : check_pieces(pieces, num_pieces, err);
    struct muster_elastic_piece *copy = r < 0 ? NULL : calloc(num_pieces + 1, sizeof *copy);
    if (r < 0 || !copy) {
        return r < 0 ? r : muster_fail(err, MUSTER_ENOMEM, "no memory for %zu pieces", num_pieces);
    }
    if (num_pieces > 0) {
        memcpy(copy, pieces, num_pieces * sizeof *copy);
    }
    pthread_mutex_lock(&job->mutex);
    bool readable = job->readable;
    saver_settle(job);
    obey_hide(job);
    r = region_set_pieces(job->region, copy, num_pieces, err);
    if (r == 0) {
        struct muster_elastic_piece *before = job->pieces;
        job->pieces = copy;
        job->num_pieces = num_pieces;
        copy = before;
    }
    if (readable && r == 0) {
        obey_show(job);
    }
    pthread_mutex_unlock(&job->mutex);
    free(copy);
    return r;
}

/* ---- From any thread ---- */

void muster_elastic_leave(struct muster_elastic *job)
{
    atomic_store(&job->leave_asked, true);
    worker_wake(job);
}

int muster_elastic_query(const struct muster_elastic *job, struct muster_elastic_info *ret,
                         struct muster_err *err)
{
    struct muster_elastic *shared = (struct muster_elastic *)job; /* its mutex is needed */
    int r = worker_check_own(job, err);
    r = r < 0 ? r : sized_check(&sized_info, ret, err);
    if (r < 0) {
        return r;
    }
    pthread_mutex_lock(&shared->mutex);
    uint64_t version = job->core.version, steps = plan_steps(&job->plan);
    struct muster_elastic_info info = {
        .struct_size = sizeof info,
        .generation = job->core.generation,
        .version = version,
        .epoch = plan_epochs_done(&job->plan, version),
        .records_done = plan_records_done(&job->plan, version),
        .records_all = plan_records_done(&job->plan, steps),
        .incarnation = job->incarnation,
        .recoveries = job->figures.recoveries,
        .recovery_ns = job->figures.recovery_ns,
        .commit_ns = job->figures.commit_ns,
        .rank = job->mine->rank,
        .size = job->mine->size,
        .finished = job->end == WORKER_FINISHED,
        .left = job->end == WORKER_LEFT,
        .checkpoint =
            job->saver.known_count > 0 ? job->saver.known[job->saver.known_count - 1].version : 0,
        .restored = job->restored,
        .diverged = job->figures.diverged,
        .diverged_version = job->figures.diverged_version,
        .diverged_rank = job->figures.diverged_rank};
    pthread_mutex_unlock(&shared->mutex);
    sized_write(&sized_info, ret, &info);
    return 0;
}
