/* See obey.h. */
#include "client/obey.h"

#include "client/recording.h"
#include "client/report.h"

#include <assert.h>
#include <stdlib.h>

/* ---- The region ---- */

void obey_show(struct muster_elastic *job)
{
    job->readable = true;
    muster_region_set(job->region, job->core.generation, job->core.version);
}

void obey_hide(struct muster_elastic *job)
{
    job->readable = false;
    muster_region_hide(job->region);
}

/* ---- Effects ---- */

static void abort_generation(struct muster_elastic *job, uint64_t generation)
{
    job->abort_wanted = generation;
    job->todo.form = job->todo.load = job->todo.restore = false;
    worker_wake(job);
}

static void apply(struct muster_elastic *job)
{
    assert(!job->todo.apply); /* the user's thread is in a call until then */
    job->todo.apply = true;
    obey_hide(job);
}

static void form(struct muster_elastic *job, const struct generation *open)
{
    *job->generation = *open;
    job->plan.anchor = open->plan.anchor;
    if (job->plan.per_worker) {
        recording_note_plan(job);
    }
    job->todo.form = true;
    if (job->readable) { /* the same version: a joiner need not wait for the user's thread */
        obey_show(job);
    }
}

static void finish(struct muster_elastic *job)
{
    worker_end(job, WORKER_FINISHED, MUSTER_EGONE, "every epoch is committed");
}

static void fail_to_follow(struct muster_elastic *job, uint64_t version)
{
    worker_end(
        job, WORKER_FAILED, MUSTER_EDATA,
        "the coordinator goes on from version %llu, this worker has %llu: its journal is not "
        "of this job, or was cut",
        (unsigned long long)version, (unsigned long long)job->core.version);
}

static void carry_out(struct muster_elastic *job, const struct commit_effect *effect,
                      const struct generation *open)
{
    switch (effect->kind) {
    case COMMIT_DO_JOIN: report_join(job); break;
    case COMMIT_DO_REPORT: report_state(job, effect->incarnation, effect->ended); break;
    case COMMIT_DO_COMMITS: report_commit(job, effect->version); break;
    case COMMIT_DO_LEAVE: report_leave(job, effect->finished); break;
    case COMMIT_DO_ABORT: abort_generation(job, effect->generation); break;
    case COMMIT_DO_APPLY: apply(job); break;
    case COMMIT_DO_FORM: form(job, open); break;
    case COMMIT_DO_LOAD: job->todo.load = true; break;
    case COMMIT_DO_RESTORE: job->todo.restore = true; break;
    case COMMIT_DO_REJOIN: break; /* hear.c knows the reason */
    case COMMIT_DO_FINISH: finish(job); break;
    case COMMIT_DO_FAIL: fail_to_follow(job, effect->version); break;
    case COMMIT_DO_ENTER:   /* the user's thread looks at core.entered, … */
    case COMMIT_DO_BARRIER: /* … at core.stage … */
    case COMMIT_DO_DISCARD: /* … and at core.version */
    case COMMIT_DO_TRIM:    /* the plan has the records of steps: none are kept */
    case COMMIT_DO_KEEP: break;
    }
}

/* Notes a generation that ends before its step does, except for a member that joins or leaves. */
static void note_loss(struct muster_elastic *job, const struct commit_event *event,
                      enum commit_stage before)
{
    bool hard = event->kind == COMMIT_LOST || (event->kind == COMMIT_CLOSE && !event->boundary);
    bool closed = job->core.stage == COMMIT_CLOSED && before != COMMIT_CLOSED;
    if (closed && hard && job->figures.lost_ns == 0) {
        job->figures.lost_ns = worker_now_ns();
    }
}

void obey(struct muster_elastic *job, const struct commit_event *event,
          const struct generation *open)
{
    struct commit_effects effects;
    enum commit_stage before = job->core.stage;
    commit_member_step(&job->core, event, &effects);
    recording_note_step(job, event, &effects);
    note_loss(job, event, before);
    for (size_t i = 0; i < effects.count; i++) {
        carry_out(job, &effects.list[i], open);
    }
    bool has_state = job->core.loaded && job->settled;
    if (has_state && !job->core.complete && job->core.version >= plan_steps(&job->plan)) {
        obey_own(job, COMMIT_COMPLETE, 0);
    }
    (void)pthread_cond_broadcast(&job->changed);
}

void obey_own(struct muster_elastic *job, enum commit_event_kind kind, uint64_t version)
{
    const struct commit_event event = {
        .kind = kind, .generation = job->mine->number, .version = version};
    obey(job, &event, NULL);
}

void obey_lost(struct muster_elastic *job, uint64_t lost, bool ended)
{
    const struct commit_event event = {
        .kind = COMMIT_LOST, .generation = job->mine->number, .incarnation = lost, .ended = ended};
    obey(job, &event, NULL);
}

/* Cancels a communicator that is being formed; aborts one that was formed, which exists until the
 * user's thread frees it. */
void obey_abort(struct muster_elastic *job)
{
    uint64_t generation = job->abort_wanted;
    struct muster_comm *comm = job->comm;
    if (generation == 0) {
        return;
    }
    job->abort_wanted = 0;
    muster_endpoint_cancel(job->endpoint, generation);
    if (!comm || job->aborting) {
        return;
    }
    job->aborting = true;
    pthread_mutex_unlock(&job->mutex);
    muster_comm_abort(comm);
    pthread_mutex_lock(&job->mutex);
    job->aborting = false;
    (void)pthread_cond_broadcast(&job->changed);
}
