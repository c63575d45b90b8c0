/* The functions of muster/elastic.h for passes and steps: what is to be computed, and the results.
 * Layer: worker (part of libmuster). Thread: the user's.
 */
#include "client/generation.h"
#include "client/obey.h"
#include "client/recording.h"
#include "client/report.h"
#include "client/saver.h"
#include "client/step.h"
#include "client/sum.h"
#include "comm/system/sized.h"

static const struct sized_kind sized_pass =
    SIZED_KIND(muster_elastic_pass, MUSTER_ELASTIC_PASS_INIT);

static void join(struct muster_elastic *job)
{
    if (!job->joins) {
        job->joins = true;
        if (job->phase == UPLINK_UP) {
            const struct commit_event event = {.kind = COMMIT_CONNECTED, .term = job->core.term};
            obey(job, &event, NULL);
        }
        worker_wake(job); /* it may have been asked to leave */
    }
}

/* The user has updated the model: the pieces hold core.version. */
static void resume(struct muster_elastic *job)
{
    if (job->core.loaded && !job->readable && job->core.stage != COMMIT_OVER) {
        obey_show(job);
        saver_offer(job);
    }
}

/* Whether to report the records that may kill this worker: if this costs nothing, in a step that is
 * tried again, or after other workers have died of the records. */
static bool is_told(const struct muster_elastic *job, struct shard_range range)
{
    const struct generation *g = job->mine;
    bool told =
        job->core.version == g->base || job->figures.step_ns >= WORKER_TOLD_MS * INT64_C(1000000);
    for (uint32_t i = 0; i < g->suspect_count && !told; i++) {
        told = shard_range_overlaps(g->suspects[i], range);
    }
    return told;
}

/* Counts the parts that are left. */
static uint32_t count_parts(const struct muster_elastic *job, struct shard_range micro_batch,
                            uint32_t done)
{
    uint32_t parts = 0;
    while (done < micro_batch.count) {
        done += generation_part(job, micro_batch, done).count;
        parts++;
    }
    return parts;
}

/* Gives the pass the next part of its micro-batch, and reports it before it is computed. */
static void take_part(struct muster_elastic *job, const struct plan_step *step,
                      struct muster_elastic_pass *ret)
{
    struct plan_share span = job->passes.span;
    uint32_t micro_batch = ret->micro_batch;
    struct shard_range whole = plan_micro_batch(&job->plan, step, micro_batch);
    uint32_t done = passes_positions(&job->passes, step->version, micro_batch);
    struct shard_range range = generation_part(job, whole, done);
    ret->record_count = aside_records_left(&job->mine->aside, &job->plan, range, job->records);
    ret->micro_batch_records = whole.count;
    ret->share = (double)ret->record_count / ret->step_records;
    ret->passes_left =
        span.first + span.count - micro_batch - 1 + count_parts(job, whole, done + range.count);
    job->pass_positions = range.count;
    job->pass_is_last = done + range.count == whole.count;
    job->computing = true;
    if (is_told(job, range)) {
        job->at_hand = aside_trim(&job->mine->aside, &job->plan, range);
        report_pass(job);
    }
    recording_note_pass(job, ret, range);
}

static void fill_pass(struct muster_elastic *job, uint32_t micro_batch,
                      struct muster_elastic_pass *ret)
{
    struct plan_step step = plan_step(&job->plan, job->core.version + 1);
    *ret = (struct muster_elastic_pass){
        .struct_size = sizeof *ret,
        .version = step.version,
        .epoch = step.epoch,
        .micro_batch = micro_batch,
        .micro_batches = step.micro_batches,
        .step_records = generation_records(job, plan_step_range(&job->plan, &step)),
        .records = job->records,
        .generation = job->mine->number,
        .rank = job->mine->rank,
        .size = job->mine->size};
    job->pass_positions = 0;
    job->pass_generation = job->mine->number;
    if (micro_batch < job->passes.span.first + job->passes.span.count) {
        take_part(job, &step, ret);
    }
    job->sums = job->summed = 0;
    job->pass_version = step.version;
    job->pass_micro_batch = micro_batch;
    job->pass_records = (uint32_t)ret->record_count;
}

static int end_of_job(const struct muster_elastic *job, struct muster_err *err)
{
    bool gone = job->end == WORKER_EXPELLED || job->end == WORKER_FAILED;
    return gone ? muster_fail(err, job->why.code, "%s", job->why.text) : 0;
}

static int next_pass(struct muster_elastic *job, struct muster_elastic_pass *ret,
                     struct muster_err *err)
{
    report_pass_end(job);
    join(job);
    if (!job->todo.apply) {
        resume(job);
    }
    int r = generation_ready(job, err);
    if (job->todo.apply) {
        return muster_fail(err, MUSTER_EINVAL,
                           "a step is committed, and muster_elastic_step was "
                           "interrupted: it is to be called again first");
    }
    if (r <= 0) {
        return r < 0 ? r : end_of_job(job, err);
    }
    r = passes_move(&job->passes, job->core.version + 1, generation_share(job), err);
    if (r == 0) {
        fill_pass(job, generation_missing(job), ret);
    }
    return r < 0 ? r : 1;
}

int muster_elastic_next(struct muster_elastic *job, struct muster_elastic_pass *ret,
                        struct muster_err *err)
{
    struct muster_elastic_pass pass;
    int r = worker_check_own(job, err);
    r = r < 0 ? r : sized_check(&sized_pass, ret, err);
    if (r < 0) {
        return r;
    }
    pthread_mutex_lock(&job->mutex);
    r = next_pass(job, &pass, err);
    if (r <= 0) {
        saver_settle(job);
    }
    pthread_mutex_unlock(&job->mutex);
    if (r == 1) {
        sized_write(&sized_pass, ret, &pass);
    }
    return r;
}

static int check_buffers(const struct muster_elastic *job, const void *gradients, size_t count,
                         const void *mean, struct muster_err *err)
{
    if (count > 0 && (!mean || (!gradients && job->pass_records > 0))) {
        return muster_fail(err, MUSTER_EINVAL, "a pass has a gradient, and a place for the mean");
    }
    return 0;
}

int muster_elastic_step(struct muster_elastic *job, const void *gradient, size_t count,
                        enum muster_type type, const void *extra, void *ret_mean,
                        struct muster_err *err)
{
    const struct step_call call = {gradient, count, type, extra, ret_mean};
    int r = worker_check_own(job, err);
    if (r < 0) {
        return r;
    }
    if (job->pass_version == 0) {
        return muster_fail(err, MUSTER_EINVAL, "a step begins with muster_elastic_next");
    }
    r = check_buffers(job, gradient, count, ret_mean, err);
    if (r < 0) {
        return r;
    }
    pthread_mutex_lock(&job->mutex);
    r = step_take(job, &call, err);
    if (r != 0) {
        saver_settle(job);
    }
    pthread_mutex_unlock(&job->mutex);
    return r;
}

int muster_elastic_sum(struct muster_elastic *job, const void *gradients, size_t count,
                       enum muster_type type, void *ret_mean, struct muster_err *err)
{
    const struct sum_call call = {gradients, count, type, ret_mean};
    int r = worker_check_own(job, err);
    if (r < 0) {
        return r;
    }
    if (type != MUSTER_F32 && type != MUSTER_F64) {
        return muster_fail(err, MUSTER_EINVAL, "a sum within a step is of type f32 or f64");
    }
    r = check_buffers(job, gradients, count, ret_mean, err);
    if (r < 0) {
        return r;
    }
    pthread_mutex_lock(&job->mutex);
    r = job->pass_version == 0
            ? muster_fail(err, MUSTER_EINVAL, "a step begins with muster_elastic_next")
            : sum_take(job, &call, err);
    pthread_mutex_unlock(&job->mutex);
    return r;
}

int muster_elastic_commit(struct muster_elastic *job, const void *extras, struct muster_err *err)
{
    int r = worker_check_own(job, err);
    if (r < 0) {
        return r;
    }
    pthread_mutex_lock(&job->mutex);
    r = job->pass_version == 0
            ? muster_fail(err, MUSTER_EINVAL, "a step begins with muster_elastic_next")
            : step_commit(job, extras, err);
    pthread_mutex_unlock(&job->mutex);
    return r;
}

size_t muster_elastic_ahead(struct muster_elastic *job, size_t passes, uint64_t *ret_records,
                            size_t room, size_t *ret_counts)
{
    if (worker_check_own(job, NULL) < 0) {
        return 0;
    }
    pthread_mutex_lock(&job->mutex);
    size_t found = generation_ahead(job, passes, ret_records, room, ret_counts);
    pthread_mutex_unlock(&job->mutex);
    return found;
}

const void *muster_elastic_extras(const struct muster_elastic *job)
{
    return job->extras;
}
