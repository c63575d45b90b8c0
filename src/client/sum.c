/* See sum.h. */
#include "client/sum.h"

#include "client/generation.h"
#include "client/loss.h"
#include "client/manifest.h"
#include "client/obey.h"
#include "client/report.h"
#include "client/saver.h"
#include "client/vote.h"

#include <stdlib.h>

/* Whether the generation in which the pass was handed out still goes on. */
static bool is_current(const struct muster_elastic *job)
{
    const struct commit_member *core = &job->core;
    bool same = core->generation == job->mine->number && job->pass_generation == core->generation;
    return same && core->stage == COMMIT_WORKING && core->loaded && job->comm &&
           job->pass_version == core->version + 1 && job->end == WORKER_GOES_ON;
}

/* Returns the number of records of the current micro-batch; 0: this worker has none. */
static uint32_t pass_count(const struct muster_elastic *job, const struct plan_step *step)
{
    uint32_t i = job->pass_micro_batch;
    return job->pass_positions == 0 ? 0 : plan_micro_batch(&job->plan, step, i).count;
}

static int ensure_room(struct muster_elastic *job, const struct sum_call *call, uint32_t passes,
                       struct muster_err *err)
{
    size_t each = muster_type_bytes(call->type), bytes;
    if (__builtin_mul_overflow(call->count, each * passes, &bytes)) {
        return muster_fail(err, MUSTER_ENOMEM, "no memory for sums of %zu elements", call->count);
    }
    void *memory = bytes > job->sum_room || !job->sum_parts ? realloc(job->sum_parts, bytes + 1)
                                                            : job->sum_parts;
    if (!memory) {
        return muster_fail(err, MUSTER_ENOMEM, "no memory for a sum of %zu bytes", bytes);
    }
    job->sum_parts = memory;
    job->sum_room = bytes > job->sum_room ? bytes : job->sum_room;
    return 0;
}

static void scale(struct muster_elastic *job, const struct sum_call *call,
                  const struct plan_step *step, struct plan_share span)
{
    size_t bytes = call->count * muster_type_bytes(call->type);
    const char *from = call->gradients;
    char *to = job->sum_parts;
    for (uint32_t i = 0; i < span.count; i++) {
        uint32_t records = plan_micro_batch(&job->plan, step, span.first + i).count;
        passes_scale(call->type, from + i * bytes, to + i * bytes, call->count,
                     (double)records / step->count);
    }
}

/* Exchanges the manifests and sums. The mutex is not held. */
static int exchange(struct muster_elastic *job, struct muster_comm *comm,
                    const struct sum_call *call, const struct plan_step *step,
                    struct plan_share span, struct muster_err *ret)
{
    int r = manifest_exchange(job, comm, step->version, job->sums + 1, ret);
    return r != 0 ? r
                  : muster_all_reduce_parts(comm, job->sum_parts, span.first, span.count,
                                            step->micro_batches, call->mean, call->count,
                                            call->type, MUSTER_SUM, ret);
}

/* The sum is complete. No member reads the state of this version any more, because all have
 * contributed to its step. */
static int take(struct muster_elastic *job)
{
    saver_settle(job);
    if (!is_current(job)) {
        return 0; /* closed meanwhile: the sum cannot be used */
    }
    if (job->readable) {
        obey_hide(job);
    }
    job->summed = job->mine->number;
    job->sums++;
    return 1;
}

int sum_take(struct muster_elastic *job, const struct sum_call *call, struct muster_err *err)
{
    struct muster_err failure = MUSTER_ERR_INIT;
    if (!is_current(job)) {
        return 0;
    }
    struct plan_step step = plan_step(&job->plan, job->pass_version);
    struct plan_share span = generation_share(job);
    struct muster_comm *comm = job->comm;
    if (job->pass_positions < pass_count(job, &step)) {
        return muster_fail(err, MUSTER_EINVAL,
                           "parts of a pass cannot be summed: options.whole_passes is to be 1");
    }
    report_pass_end(job);
    int r = ensure_room(job, call, span.count, err);
    if (r < 0) {
        return r;
    }
    scale(job, call, &step, span);
    obey_own(job, COMMIT_READY, 0);
    job->vote_due = job->readable;
    pthread_mutex_unlock(&job->mutex);
    r = exchange(job, comm, call, &step, span, &failure);
    pthread_mutex_lock(&job->mutex);
    job->computing = job->pass_records > 0; /* the step function continues */
    if (r == VOTE_AGAIN) {
        return vote_take(job, err);
    }
    return r < 0 ? loss_take(job, r, &failure, err) : take(job);
}
