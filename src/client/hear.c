/* See hear.h. */
#include "client/hear.h"

#include "client/obey.h"
#include "client/recording.h"
#include "client/report.h"
#include "client/saver.h"
#include "rendezvous/rendezvous.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int unexpected(const struct wire_message *m, struct muster_err *err)
{
    return muster_fail(err, MUSTER_EPROTO, "the coordinator sent %s out of turn",
                       wire_kind_name(m->kind));
}

/* ---- The beginning of a connection ---- */

/* During the greeting a refusal means that the token is wrong, later that the members disagree. */
static int refused(struct muster_elastic *job, const struct wire_text *why)
{
    bool greeting = job->phase == UPLINK_GREETING;
    worker_end(job, WORKER_FAILED, greeting ? MUSTER_EUNAUTH : MUSTER_ECONFLICT,
               "the coordinator refused this worker: %.*s", (int)why->count, why->bytes);
    return 0;
}

static int welcomed(struct muster_elastic *job, const struct wire_message *m,
                    struct muster_err *err)
{
    if (m->kind != WIRE_WELCOME) {
        return unexpected(m, err);
    }
    if (m->term < job->core.term) {
        return muster_fail(err, MUSTER_EUNAVAIL,
                           "a coordinator of term %llu answers, where term %llu has begun",
                           (unsigned long long)m->term, (unsigned long long)job->core.term);
    }
    obey(job, &(struct commit_event){.kind = COMMIT_WELCOMED, .term = m->term}, NULL);
    job->phase = UPLINK_DECLARING;
    report_dataset(job);
    return 0;
}

/* Takes over the data set as the job has it. It cannot change once the plan is known. */
static int settle(struct muster_elastic *job, const struct wire_dataset *told,
                  struct muster_err *err)
{
    struct plan plan = job->plan;
    plan.dataset = told->number;
    plan.micro_batches = told->micro_batches;
    plan.per_worker = told->per_worker;
    plan.max_steps = told->max_steps;
    const struct plan its = {.records = told->records,
                             .seed = told->seed,
                             .epochs = told->epochs,
                             .batch = told->batch,
                             .micro_batches = told->micro_batches,
                             .per_worker = told->per_worker,
                             .shuffle = told->block,
                             .dataset = told->number,
                             .max_steps = told->max_steps};
    const struct plan *known = job->settled ? &job->plan : &plan;
    const char *wrong = plan_check(&its);
    if (!wrong && known->max_steps != its.max_steps) {
        wrong = "it ends with another step than it did";
    }
    if (wrong || plan_digest(known) != plan_digest(&its)) {
        return muster_fail(err, MUSTER_ECONFLICT, "the coordinator has another data set: %s",
                           wrong ? wrong : "not the one that this worker trains");
    }
    if (!job->settled) { /* from now on it is read without the mutex */
        job->plan = plan;
        job->settled = true;
        recording_note_plan(job);
    }
    return 0;
}

static int declared(struct muster_elastic *job, const struct wire_message *m,
                    struct muster_err *err)
{
    if (m->kind != WIRE_DATASET) {
        return unexpected(m, err);
    }
    int r = settle(job, &m->dataset, err);
    if (r == MUSTER_ECONFLICT) {
        worker_end(job, WORKER_FAILED, r, "%s", err->text);
    }
    job->phase = UPLINK_UP;
    if (job->joins) {
        obey(job, &(struct commit_event){.kind = COMMIT_CONNECTED, .term = m->term}, NULL);
    }
    if (job->at_hand.count > 0) { /* another coordinator may not know them */
        report_pass(job);
    }
    (void)pthread_cond_broadcast(&job->changed);
    return r;
}

/* ---- Messages about generations ---- */

static void copy_member(struct generation *g, int i, const struct wire_member *member)
{
    g->incarnations[i] = member->incarnation;
    g->loaded[i] = member->loaded;
    memcpy(g->endpoints[i].bytes, member->address.endpoint, MUSTER_MEMBER_BYTES);
    memcpy(g->regions[i].bytes, member->address.region, MUSTER_MEMBER_BYTES);
}

_Static_assert(sizeof((struct aside){0}).records == WIRE_ASIDE_MAX * sizeof(uint64_t), "all of it");

static void copy_aside(const struct muster_elastic *job, const struct wire_ranges *told,
                       struct aside *ret)
{
    ret->count = 0;
    for (uint32_t i = 0; i < told->count; i++) {
        if (told->list[i].dataset == job->plan.dataset) {
            ret->records[ret->count++] = told->list[i].first;
        }
    }
}

static int copy_open(const struct muster_elastic *job, const struct wire_open *told,
                     struct generation *ret, struct muster_err *err)
{
    ret->rank = -1;
    ret->number = told->generation;
    ret->base = told->base;
    ret->restore = told->restore;
    ret->size = (int)told->members.count;
    memcpy(ret->checkpoint, told->checkpoint.bytes, told->checkpoint.count);
    memcpy(ret->digest, told->digest, sizeof ret->digest);
    ret->suspect_count = told->suspects.count;
    for (uint32_t i = 0; i < told->suspects.count; i++) {
        ret->suspects[i] = told->suspects.list[i];
    }
    copy_aside(job, &told->aside, &ret->aside);
    if (told->members.count > MUSTER_MAX_RANKS) {
        return muster_fail(err, MUSTER_EUNSUPPORTED, "a generation of %u workers: at most %d",
                           told->members.count, MUSTER_MAX_RANKS);
    }
    ret->plan = job->plan;
    ret->plan.anchor = told->anchor;
    if (!plan_anchor_fits(&job->plan, &told->anchor, told->base) ||
        told->base > plan_steps(&ret->plan)) {
        return muster_fail(err, MUSTER_EPROTO,
                           "a generation was sent whose steps are none of this data set");
    }
    for (int i = 0; i < ret->size; i++) {
        copy_member(ret, i, &told->members.list[i]);
        ret->rank = ret->incarnations[i] == job->incarnation ? i : ret->rank;
    }
    return ret->rank >= 0
               ? 0
               : muster_fail(err, MUSTER_EPROTO, "a generation without this worker was sent to it");
}

static int opened(struct muster_elastic *job, const struct wire_message *m, struct muster_err *err)
{
    const struct wire_open *told = &m->open;
    struct generation *next = calloc(1, sizeof *next);
    if (!next) {
        return muster_fail(err, MUSTER_ENOMEM, "no memory for a generation");
    }
    int r = copy_open(job, told, next, err);
    if (r == 0) {
        const struct commit_event event = {.kind = COMMIT_OPEN,
                                           .term = m->term,
                                           .generation = told->generation,
                                           .version = told->base,
                                           .lineage = told->lineage,
                                           .restore = told->restore};
        obey(job, &event, next);
    } else if (r == MUSTER_EUNSUPPORTED) {
        worker_end(job, WORKER_FAILED, r, "%s", err->text);
    }
    free(next);
    return r;
}

/* Ends this process, because the user's thread does not return and nothing else can end it. The
 * parent of this process sees a core, or the stacks of all threads (Python's faulthandler), and may
 * start it again. If the thread has returned meanwhile, it gets the error of an expulsion as
 * usual. */
static void end_hung_process(const struct muster_elastic *job, const struct wire_text *why)
{
    if (job->computing) {
        (void)fprintf(stderr, "muster: this worker is ended: %.*s\n", (int)why->count, why->bytes);
        (void)fflush(stderr);
        abort();
    }
}

static int expelled(struct muster_elastic *job, const struct wire_message *m)
{
    const struct wire_expelled *told = &m->expelled;
    if (told->incarnation != job->incarnation || m->term < job->core.term) {
        return 0;
    }
    enum worker_ending end = told->reason == RENDEZVOUS_DONE     ? WORKER_FINISHED
                             : told->reason == RENDEZVOUS_LEFT   ? WORKER_LEFT
                             : told->reason == RENDEZVOUS_FAILED ? WORKER_FAILED
                                                                 : WORKER_EXPELLED;
    obey(job,
         &(struct commit_event){
             .kind = COMMIT_EXPELLED, .term = m->term, .incarnation = told->incarnation},
         NULL);
    if (told->reason == RENDEZVOUS_HANGS) {
        end_hung_process(job, &told->why);
    }
    if (end == WORKER_FAILED) { /* the rest of the text is in the coordinator's log */
        const char *line = memchr(told->why.bytes, '\n', told->why.count);
        worker_end(job, end, MUSTER_EFAILED, "the job has failed: %.*s",
                   (int)(line ? line - told->why.bytes : told->why.count), told->why.bytes);
    } else {
        worker_end(job, end, MUSTER_EGONE, "this worker was left out of the job: %.*s",
                   (int)told->why.count, told->why.bytes);
    }
    return 0;
}

int hear(struct muster_elastic *job, const struct wire_message *m, struct muster_err *err)
{
    if (m->kind == WIRE_REFUSED) {
        return refused(job, &m->refused.why);
    }
    if (job->phase == UPLINK_GREETING) {
        return welcomed(job, m, err);
    }
    if (job->phase == UPLINK_DECLARING) {
        return declared(job, m, err);
    }
    struct commit_event event = {.term = m->term};
    switch ((int)m->kind) {
    case WIRE_OPEN: return opened(job, m, err);
    case WIRE_EXPELLED: return expelled(job, m);
    case WIRE_CLOSE:
        event.kind = COMMIT_CLOSE;
        event.generation = m->close.generation;
        event.boundary = m->close.boundary;
        break;
    case WIRE_ACK:
        event.kind = COMMIT_ACK;
        event.version = m->ack.version;
        break;
    case WIRE_CHECKPOINT: saver_hear(job, &m->checkpoint); return 0;
    case WIRE_GRANT: return 0; /* the records of a plan are not granted */
    default: return unexpected(m, err);
    }
    obey(job, &event, NULL);
    return 0;
}
