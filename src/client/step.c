/* See step.h. The numbers are the rules of docs/step-commit.md. */
#include "client/step.h"

#include "client/generation.h"
#include "client/loss.h"
#include "client/manifest.h"
#include "client/obey.h"
#include "client/report.h"
#include "client/vote.h"
#include "commit/planted.h"

#include <stdlib.h>
#include <string.h>

/* ---- This worker's passes ---- */

static int keep_pass(struct muster_elastic *job, const struct step_call *call,
                     struct muster_err *err)
{
    bool current = job->pass_version == job->core.version + 1 && job->mine->size > 0;
    if (job->pass_positions == 0 || !current) {
        return 0;
    }
    int r = passes_move(&job->passes, job->pass_version, generation_share(job), err);
    if (r == 0) {
        struct plan_step step = plan_step(&job->plan, job->pass_version);
        uint32_t all = generation_records(job, plan_step_range(&job->plan, &step));
        const struct passes_part part = {.micro_batch = job->pass_micro_batch,
                                         .positions = job->pass_positions,
                                         .last = job->pass_is_last,
                                         .gradient = call->gradient,
                                         .share = (double)job->pass_records / all,
                                         .extra = call->extra};
        passes_put(&job->passes, &part);
        job->figures.trained += job->pass_records;
        job->pass_positions = job->pass_records = 0; /* a repeated call brings nothing new */
    }
    return r;
}

/* Keeps the extras of all passes of this worker, whose gradients muster_elastic_sum has summed. */
static int keep_extras(struct muster_elastic *job, const char *extras, struct muster_err *err)
{
    const float none = 0;
    struct plan_step step = plan_step(&job->plan, job->pass_version);
    passes_clear(&job->passes); /* from an earlier try of this call */
    int r = passes_move(&job->passes, job->pass_version, generation_share(job), err);
    struct plan_share span = job->passes.span;
    for (uint32_t i = 0; r == 0 && i < span.count; i++) {
        const struct passes_part part = {
            .micro_batch = span.first + i,
            .positions = plan_micro_batch(&job->plan, &step, span.first + i).count,
            .last = true,
            .gradient = &none,
            .share = 1.0,
            .extra = extras ? extras + i * job->extra_bytes : NULL};
        passes_put(&job->passes, &part);
        job->figures.trained += part.positions;
    }
    job->pass_positions = job->pass_records = 0;
    return r;
}

/* ---- The exchange: no mutex is held ---- */

static int gather_extras(struct muster_elastic *job, struct muster_comm *comm, const size_t *counts,
                         struct muster_err *ret)
{
    if (job->extra_bytes == 0) {
        return 0;
    }
    return muster_all_gatherv(comm, job->passes.extras, job->extras, counts, MUSTER_U8, ret);
}

static int sum(struct muster_elastic *job, struct muster_comm *comm, const struct step_call *call,
               uint32_t micro_batches, struct muster_err *ret)
{
    struct passes *p = &job->passes;
    void *out = p->type == MUSTER_BF16 ? job->kept_sum : call->mean;
    return muster_all_reduce_parts(comm, p->slots, p->span.first, p->span.count, micro_batches, out,
                                   p->count, p->summed, MUSTER_SUM, ret);
}

/* Counts the bytes that each rank adds. */
static void count_extras(const struct muster_elastic *job, const struct plan_share *shares,
                         size_t *ret)
{
    for (int r = 0; r < job->mine->size; r++) {
        ret[r] = shares[r].count * job->extra_bytes;
    }
}

static int exchange(struct muster_elastic *job, const struct step_call *call,
                    const struct plan_share *shares, const struct plan_step *step,
                    struct muster_comm *comm, struct muster_err *ret)
{
    size_t counts[MUSTER_MAX_RANKS];
    count_extras(job, shares, counts);
    int r = manifest_exchange(job, comm, step->version, 0, ret);
    r = r != 0 ? r : gather_extras(job, comm, counts, ret);
    return r != 0 ? r : sum(job, comm, call, step->micro_batches, ret);
}

/* ---- The transaction ---- */

/* Tries the step (rules 1 to 3). Returns 0 when the caller must look again: the step is committed,
 * or the generation is closed. */
static int try(struct muster_elastic *job, const struct step_call *call, struct muster_err *err)
{
    struct muster_err failure = MUSTER_ERR_INIT;
    struct plan_share shares[MUSTER_MAX_RANKS];
    struct plan_step step = plan_step(&job->plan, job->core.version + 1);
    struct muster_comm *comm = job->comm;
    int64_t began_ns = worker_now_ns();
    generation_shares(job, shares);
    obey_own(job, COMMIT_READY, 0);
    job->vote_due = job->readable;
    pthread_mutex_unlock(&job->mutex);
    int r = exchange(job, call, shares, &step, comm, &failure);
    pthread_mutex_lock(&job->mutex);
    if (r == VOTE_AGAIN) {
        return vote_take(job, err);
    }
    if (r == 0 && job->core.generation == job->mine->number) {
        obey_own(job, COMMIT_REDUCED, step.version);
        if (job->core.stage != COMMIT_PREPARED) {
            return 0; /* closed meanwhile: the sum cannot be used, but the passes can */
        }
        pthread_mutex_unlock(&job->mutex);
        r = muster_barrier(comm, &failure);
        pthread_mutex_lock(&job->mutex);
    }
    if (r < 0) {
        return loss_take(job, r, &failure, err);
    }
    obey_own(job, COMMIT_PASSED, step.version);
    job->figures.commit_ns = worker_now_ns() - began_ns;
    return 0;
}

/* ---- The end of a call ---- */

static int64_t mean(int64_t before_ns, int64_t now_ns)
{
    return before_ns > 0 ? before_ns + (now_ns - before_ns) / 8 : now_ns;
}

/* The last step of an epoch may have no pass for this worker. */
static void note_pass(struct figures *f, int64_t own_ns, uint32_t passes)
{
    if (own_ns > 0 && passes > 0) {
        f->pass_ns = mean(f->pass_ns, own_ns / passes);
    }
}

/* Updates the means for PROGRESS. A step in which a member was lost says nothing about this
 * worker. */
static void note_step(struct figures *f, uint64_t generation, uint32_t passes, int64_t now_ns)
{
    if (f->stepped_number == generation) {
        f->step_ns = mean(f->step_ns, now_ns - f->stepped_ns);
        f->wait_ns = mean(f->wait_ns, f->commit_ns);
        note_pass(f, now_ns - f->stepped_ns - f->commit_ns, passes);
    } else { /* the shares may have changed */
        f->step_ns = f->wait_ns = 0;
        f->pass_ns = 0;
    }
    f->stepped_ns = now_ns;
    f->stepped_number = generation;
}

/* Hands the sum out. By rule 3 this step counts, whatever happens from now on. */
static int hand_out(struct muster_elastic *job, const struct step_call *call)
{
    int64_t now_ns = worker_now_ns();
    struct figures *f = &job->figures;
    bool kept = job->is_kept || job->passes.type == MUSTER_BF16;
    passes_narrow(&job->passes, kept ? job->kept_sum : call->mean, call->mean);
    note_step(f, job->mine->number, job->passes.span.count, now_ns);
    job->is_kept = false;
    job->todo.apply = false;
    job->pristine = false;
    job->pass_version = 0;
    job->summed = 0;
    passes_clear(&job->passes);
    return 1;
}

static int ensure_kept(struct muster_elastic *job, struct muster_err *err)
{
    size_t bytes = job->passes.count * muster_type_bytes(job->passes.summed);
    void *memory = bytes > job->kept_room || !job->kept_sum ? realloc(job->kept_sum, bytes + 1)
                                                            : job->kept_sum;
    if (!memory) {
        return muster_fail(err, MUSTER_ENOMEM, "no memory for a sum of %zu bytes", bytes);
    }
    job->kept_sum = memory;
    job->kept_room = bytes > job->kept_room ? bytes : job->kept_room;
    return 0;
}

/* The call ends with an error, but the coordinator may still commit the prepared step: its sum is
 * kept for the repeated call. */
static int leave_off(struct muster_elastic *job, const struct step_call *call, int code)
{
    const struct passes *p = &job->passes;
    bool held = job->core.prepared || job->todo.apply;
    if (!held || job->is_kept || p->type == MUSTER_BF16) {
        return code;
    }
    if (ensure_kept(job, NULL) < 0) {
        worker_end(job, WORKER_FAILED, MUSTER_ENOMEM, "no memory to keep the sum of a step");
        return code;
    }
    memcpy(job->kept_sum, call->mean, p->count * muster_type_bytes(p->type));
    job->is_kept = true;
    return code;
}

static int end_of_job(const struct muster_elastic *job, struct muster_err *err)
{
    bool gone = job->end == WORKER_EXPELLED || job->end == WORKER_FAILED;
    return gone ? muster_fail(err, job->why.code, "%s", job->why.text) : 0;
}

/* The planted mistake NO_COMMIT: does as programs do that take the error of an all-reduce for the
 * end of the step. */
static bool gives_up(struct muster_elastic *job, const struct step_call *call)
{
    const struct passes *p = &job->passes;
    bool gives = PLANTED(NO_COMMIT) && job->pass_generation != job->mine->number;
    if (gives && p->span.count > 0) {
        memcpy(call->mean, p->slots, p->count * muster_type_bytes(p->summed));
    }
    return gives;
}

/* Whether sums were taken in a generation that is over: the next generation begins with the first
 * sum. */
static bool is_outlived(struct muster_elastic *job)
{
    bool outlived = job->summed != 0 && job->summed != job->mine->number;
    if (outlived) {
        passes_clear(&job->passes);
        job->summed = 0;
    }
    return outlived;
}

/* Returns 1 when the step is committed, 0 when it needs more passes. */
static int commit(struct muster_elastic *job, const struct step_call *call, struct muster_err *err)
{
    int r = 0;
    report_pass_end(job);
    while (r == 0) {
        r = generation_ready(job, err);
        if (r < 0) {
            return leave_off(job, call, r);
        }
        if (job->todo.apply || gives_up(job, call)) {
            return hand_out(job, call);
        }
        if (r == 0) {
            return end_of_job(job, err);
        }
        if (job->core.version + 1 != job->pass_version || is_outlived(job)) {
            return 0; /* the state was or must be restored: this pass cannot be used */
        }
        r = passes_move(&job->passes, job->pass_version, generation_share(job), err);
        if (r == 0 && generation_missing(job) < job->passes.span.first + job->passes.span.count) {
            return 0;
        }
        if (r == 0) {
            generation_fill(job);
        }
        r = r < 0 ? r : try(job, call, err);
        if (r == 0 && job->todo.heal) {
            return 0; /* muster_elastic_next reads the state, like a joiner: this pass cannot be
                         used */
        }
    }
    return leave_off(job, call, r);
}

int step_take(struct muster_elastic *job, const struct step_call *call, struct muster_err *err)
{
    bool again = job->is_kept; /* the kept sum has its shape already */
    int r = again ? 0 : passes_shape(&job->passes, call->count, call->type, err);
    r = r == 0 && call->type == MUSTER_BF16 ? ensure_kept(job, err) : r;
    r = r < 0 ? r : keep_pass(job, call, err);
    return r < 0 ? leave_off(job, call, r) : commit(job, call, err);
}

int step_commit(struct muster_elastic *job, const void *extras, struct muster_err *err)
{
    float none = 0;
    const struct step_call call = {NULL, 1, MUSTER_F32, NULL, &none};
    bool current = job->summed != 0 && job->summed == job->mine->number;
    int r = job->is_kept ? 0 : passes_shape(&job->passes, call.count, call.type, err);
    r = r == 0 && current && !job->is_kept ? keep_extras(job, extras, err) : r;
    return r < 0 ? leave_off(job, &call, r) : commit(job, &call, err);
}
