/* See generation.h. */
#include "client/generation.h"

#include "client/loss.h"
#include "client/state.h"

#include <assert.h>
#include <string.h>

/* ---- Who computes what ---- */

/* In a generation's first step those compute that have the state when it begins; then all. */
static bool computes(const struct muster_elastic *job, int rank)
{
    const struct generation *g = job->mine;
    return g->loaded[rank] || g->restore || job->core.version > g->base;
}

void generation_shares(const struct muster_elastic *job, struct plan_share *ret)
{
    struct plan_step step = plan_step(&job->plan, job->core.version + 1);
    uint32_t size = 0, before = 0;
    for (int r = 0; r < job->mine->size; r++) {
        size += computes(job, r);
    }
    for (int r = 0; r < job->mine->size; r++) {
        ret[r] = (struct plan_share){0};
        if (computes(job, r)) {
            ret[r] = plan_share(step.micro_batches, before++, size);
        }
    }
}

struct plan_share generation_share(const struct muster_elastic *job)
{
    struct plan_share shares[MUSTER_MAX_RANKS];
    generation_shares(job, shares);
    return shares[job->mine->rank];
}

/* ---- Forming ---- */

void generation_leave(struct muster_elastic *job)
{
    while (job->aborting) {
        (void)pthread_cond_wait(&job->changed, &job->mutex);
    }
    struct muster_comm *comm = job->comm;
    job->comm = NULL;
    if (comm) {
        pthread_mutex_unlock(&job->mutex);
        muster_comm_free(comm);
        pthread_mutex_lock(&job->mutex);
    }
}

static void note_formed(struct muster_elastic *job)
{
    struct figures *f = &job->figures;
    if (f->lost_ns > 0) {
        f->recovery_ns = worker_now_ns() - f->lost_ns;
        f->recoveries++;
        f->lost_ns = 0;
    }
}

static int has_had_enough(void *context)
{
    const struct patience *p = context;
    bool silent = p->probe && probe_look(p->probe);
    return silent || worker_interrupted(p->job);
}

/* Without the mutex. A member that is stopped would be waited for: it is as good as dead. */
static int form_with(struct muster_elastic *job, const struct generation *g,
                     struct muster_comm **ret, struct muster_err *failure)
{
    struct probe *probe = &job->probe;
    struct muster_comm_options options = MUSTER_COMM_OPTIONS_INIT;
    struct patience *patience = &job->patience;
    probe_init(probe, g->regions, g->size, g->rank);
    *patience = (struct patience){job, probe};
    options.timeout_ms = job->peer_ms;
    options.interrupted = has_had_enough;
    options.interrupted_context = patience;
    int r = muster_comm_form(job->endpoint, g->endpoints, g->size, g->rank, g->number, job->peer_ms,
                             &options, ret, failure);
    patience->probe = NULL;
    probe_done(probe);
    if (r == MUSTER_EINTERRUPTED && probe->silent >= 0) {
        r = muster_fail(failure, MUSTER_EPEERDEAD, "worker %d is silent", probe->silent);
        failure->rank = probe->silent;
    }
    return r;
}

/* The next one is formed while nothing of the former can complete: it was closed. */
static int form(struct muster_elastic *job, struct muster_err *err)
{
    struct muster_err failure = MUSTER_ERR_INIT;
    struct muster_comm *comm = NULL;
    struct generation *mine = job->mine;
    job->todo.form = false;
    *mine = *job->generation;
    generation_leave(job);
    pthread_mutex_unlock(&job->mutex);
    int r = form_with(job, mine, &comm, &failure);
    pthread_mutex_lock(&job->mutex);
    bool current = job->core.generation == mine->number && job->core.stage == COMMIT_WORKING;
    if (r < 0) {
        return loss_take(job, r, &failure, err);
    }
    job->comm = comm;
    if (current) {
        note_formed(job);
    } else {
        generation_leave(job); /* it was closed meanwhile */
    }
    return 0;
}

int generation_ready(struct muster_elastic *job, struct muster_err *err)
{
    for (;;) {
        const struct commit_member *core = &job->core;
        bool works = core->stage == COMMIT_WORKING;
        int r;
        if (job->end != WORKER_GOES_ON || job->todo.apply) {
            return 0;
        }
        if (works && job->todo.form) {
            r = form(job, err);
        } else if (works && job->todo.restore) {
            r = state_restore(job, err);
        } else if (works && job->todo.load) {
            r = state_load(job, err);
        } else if (works && job->comm && core->loaded && !core->complete) {
            return 1;
        } else {
            r = worker_wait(job, err);
        }
        if (r < 0) {
            return r;
        }
    }
}
