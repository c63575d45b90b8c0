/* See generation.h. */
#include "client/generation.h"

#include "client/loss.h"
#include "client/state.h"
#include "commit/planted.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- Which member computes which passes ---- */

/* In the first step of a generation only members that have the state when it begins compute; later
 * all do. */
static bool computes(const struct generation *g, const struct plan_step *step, int rank)
{
    return g->loaded[rank] || g->restore || step->version > g->base + 1;
}

/* Whether the measured shares apply. The last step of an epoch may have fewer micro-batches, which
 * are divided evenly. */
static bool is_balanced(const struct muster_elastic *job, const struct plan_step *step)
{
    return job->balance.generation == job->mine->number && step->version > job->balance.version &&
           step->micro_batches == plan_full(&job->mine->plan);
}

static void divide(const struct muster_elastic *job, struct plan_share *ret)
{
    uint32_t first = 0;
    for (int r = 0; r < job->mine->size; r++) {
        ret[r] = (struct plan_share){first, job->balance.counts[r]};
        first += ret[r].count;
    }
}

static void divide_evenly(const struct muster_elastic *job, const struct plan_step *step,
                          struct plan_share *ret)
{
    uint32_t size = 0, before = 0;
    for (int r = 0; r < job->mine->size; r++) {
        size += computes(job->mine, step, r);
    }
    for (int r = 0; r < job->mine->size; r++) {
        ret[r] = (struct plan_share){0};
        if (computes(job->mine, step, r)) {
            ret[r] = plan_share(step->micro_batches, before++, size);
        }
    }
}

static void shares_of(const struct muster_elastic *job, const struct plan_step *step,
                      struct plan_share *ret)
{
    if (is_balanced(job, step)) {
        divide(job, ret);
    } else {
        divide_evenly(job, step, ret);
    }
}

void generation_shares(const struct muster_elastic *job, struct plan_share *ret)
{
    struct plan_step step = plan_step(&job->plan, job->core.version + 1);
    shares_of(job, &step, ret);
}

static struct plan_share share_of(const struct muster_elastic *job, const struct plan_step *step)
{
    struct plan_share shares[MUSTER_MAX_RANKS];
    shares_of(job, step, shares);
    return shares[job->mine->rank];
}

struct plan_share generation_share(const struct muster_elastic *job)
{
    struct plan_step step = plan_step(&job->plan, job->core.version + 1);
    return share_of(job, &step);
}

void generation_balance(struct muster_elastic *job, uint64_t version, const uint64_t *pass_ns)
{
    struct plan_share shares[MUSTER_MAX_RANKS];
    const struct plan *plan = &job->mine->plan; /* the mutex is not held */
    struct plan_step step = plan_step(plan, version);
    uint32_t counts[MUSTER_MAX_RANKS] = {0};
    if (job->looked_number != job->mine->number) {
        job->looked_number = job->mine->number;
        job->looked_version = job->mine->base;
    }
    if (version < job->looked_version + BALANCE_STEPS || step.micro_batches < plan_full(plan)) {
        return;
    }
    job->looked_version = version;
    shares_of(job, &step, shares);
    for (int r = 0; r < job->mine->size; r++) {
        counts[r] = shares[r].count;
    }
    if (balance_move(pass_ns, job->mine->size, step.micro_batches, counts)) {
        job->balance = (struct balance){.generation = job->mine->number, .version = version};
        memcpy(job->balance.counts, counts, sizeof counts);
        job->figures.pass_ns = 0; /* it was measured with other shares */
    }
}

uint32_t generation_records(const struct muster_elastic *job, struct shard_range range)
{
    return aside_count_left(&job->mine->aside, &job->plan, range);
}

/* Returns the records from `done` to the next beginning or end of a suspect, so that parts end
 * there. */
static struct shard_range cut(const struct muster_elastic *job, struct shard_range micro_batch,
                              uint32_t done)
{
    const struct generation *g = job->mine;
    uint64_t first = micro_batch.first + done, end = shard_range_end(micro_batch);
    for (uint32_t i = 0; i < g->suspect_count && !job->whole_passes; i++) {
        struct shard_range suspect = g->suspects[i];
        uint64_t edges[] = {suspect.first, shard_range_end(suspect)};
        bool other = suspect.dataset != micro_batch.dataset || suspect.epoch != micro_batch.epoch;
        for (int e = 0; !other && e < 2; e++) {
            end = edges[e] > first && edges[e] < end ? edges[e] : end;
        }
    }
    micro_batch.first = first;
    micro_batch.count = (uint32_t)(end - first);
    return micro_batch;
}

/* Each part has at least one record that is trained, and so has the rest after it. */
struct shard_range generation_part(const struct muster_elastic *job, struct shard_range micro_batch,
                                   uint32_t done)
{
    struct shard_range part = cut(job, micro_batch, done);
    for (;;) {
        uint32_t reached = (uint32_t)(shard_range_end(part) - micro_batch.first);
        struct shard_range rest = micro_batch;
        rest.first += reached;
        rest.count -= reached;
        if (rest.count == 0 ||
            (generation_records(job, part) > 0 && generation_records(job, rest) > 0)) {
            return part;
        }
        part.count += cut(job, micro_batch, reached).count;
    }
}

/* Whether every record of the micro-batch is set aside, so that no member computes it. */
static bool is_empty(const struct muster_elastic *job, const struct plan_step *step,
                     uint32_t micro_batch)
{
    return generation_records(job, plan_micro_batch(&job->plan, step, micro_batch)) == 0;
}

uint32_t generation_missing(const struct muster_elastic *job)
{
    const struct passes *p = &job->passes;
    struct plan_step step = plan_step(&job->plan, p->version);
    uint32_t i = p->span.first, end = p->span.first + p->span.count;
    while (i < end && (passes_has(p, p->version, i) || is_empty(job, &step, i))) {
        i++;
    }
    return i;
}

void generation_fill(struct muster_elastic *job)
{
    struct passes *p = &job->passes;
    struct plan_step step = plan_step(&job->plan, p->version);
    for (uint32_t i = 0; i < p->span.count && job->mine->aside.count > 0; i++) {
        if (is_empty(job, &step, p->span.first + i)) {
            passes_put_none(p, p->span.first + i);
        }
    }
}

/* ---- The next passes ---- */

/* Steps through the next passes of this worker. */
struct outlook {
    uint64_t version;
    struct plan_step step;
    struct plan_share share;
    uint32_t next;
    uint32_t done; /* records of the pass at `next` */
};

static bool look_at_step(const struct muster_elastic *job, struct outlook *o, uint64_t version)
{
    if (version > plan_steps(&job->plan)) {
        return false;
    }
    o->version = version;
    o->step = plan_step(&job->plan, version);
    o->share = share_of(job, &o->step);
    o->next = o->share.first;
    o->done = passes_positions(&job->passes, version, o->next);
    return true;
}

size_t generation_ahead(struct muster_elastic *job, size_t passes, uint64_t *ret_records,
                        size_t room, size_t *ret_counts)
{
    struct outlook o;
    size_t used = 0, found = 0;
    bool goes_on = job->mine->size > 0 && look_at_step(job, &o, job->core.version + 1);
    while (goes_on && found < passes) {
        if (o.next == o.share.first + o.share.count) {
            goes_on = look_at_step(job, &o, o.version + 1);
            continue;
        }
        struct shard_range whole = plan_micro_batch(&job->plan, &o.step, o.next);
        if (o.done == whole.count || is_empty(job, &o.step, o.next)) {
            o.done = passes_positions(&job->passes, o.version, ++o.next);
            continue;
        }
        struct shard_range range = generation_part(job, whole, o.done);
        if (range.count > room - used) {
            break;
        }
        uint32_t records =
            aside_records_left(&job->mine->aside, &job->plan, range, ret_records + used);
        o.done += range.count;
        used += records;
        ret_counts[found++] = records;
    }
    return used;
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

/* Forms the communicator; the caller has released the mutex. A member that is stopped would block
 * the others, and is treated as dead. */
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

int generation_make_room(struct muster_elastic *job, const struct plan *plan,
                         struct muster_err *err)
{
    uint32_t full = plan_full(plan), next = plan->anchor.next, most = full > next ? full : next;
    size_t each = job->extra_bytes + 1;
    if (most <= job->extras_room) {
        return 0;
    }
    char *extras = realloc(job->extras, most * each);
    if (!extras) {
        return muster_fail(err, MUSTER_ENOMEM, "no memory for what %u passes bring", most);
    }
    memset(extras + job->extras_room * each, 0, (most - job->extras_room) * each);
    job->extras = extras;
    job->extras_room = most;
    return 0;
}

/* Forms the communicator of the new generation. Nothing of the former one can complete any more,
 * because it was closed. */
static int form(struct muster_elastic *job, struct muster_err *err)
{
    struct muster_err failure = MUSTER_ERR_INIT;
    struct muster_comm *comm = NULL;
    struct generation *mine = job->mine;
    int r = generation_make_room(job, &job->generation->plan, err);
    if (r < 0) {
        return r;
    }
    job->todo.form = false;
    if (!aside_equals(&mine->aside, &job->generation->aside)) {
        passes_clear(&job->passes); /* their weights are of more records */
    }
    *mine = *job->generation;
    job->vote = (struct vote){.decided = true};
    job->vote.odd[mine->rank] = job->todo.heal;
    generation_leave(job);
    pthread_mutex_unlock(&job->mutex);
    r = form_with(job, mine, &comm, &failure);
    pthread_mutex_lock(&job->mutex);
    bool current = job->core.generation == mine->number && job->core.stage == COMMIT_WORKING;
    if (r < 0) {
        return loss_take(job, r, &failure, err);
    }
    job->comm = comm;
    if (current) {
        note_formed(job);
    } else {
        generation_leave(job); /* the generation was closed meanwhile */
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
        } else if (works && job->todo.load && !PLANTED(UNLOADED_VOTE)) {
            r = state_load(job, err);
        } else if (works && job->todo.heal && job->comm) {
            r = state_heal(job, err);
        } else if (works && job->comm && (core->loaded || PLANTED(UNLOADED_VOTE)) &&
                   !core->complete) {
            return 1;
        } else {
            r = worker_wait(job, err);
        }
        if (r < 0) {
            return r;
        }
    }
}
