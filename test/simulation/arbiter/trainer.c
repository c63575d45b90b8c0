/* A worker of the planned data set: it does what src/commit tells it, and computes its share of
 * each step pass by pass, as src/client does. See job.h. */
#include "job.h"

#include "rendezvous/rendezvous.h"

#include <stdio.h>
#include <string.h>

void trainer_begin(const struct job *job, struct process *p)
{
    p->trainer.plan = job->plan;
    commit_member_init(&p->trainer.core, p->incarnation);
    p->trainer.refused = UINT64_MAX;
}
/* ---- Messages that it sends ---- */

static struct wire_text text_of(const char *text)
{
    return (struct wire_text){text, (uint32_t)strlen(text)};
}

void trainer_declare(struct job *job, struct process *p)
{
    const struct plan *plan = &job->plan;
    process_say(job, p,
                &(struct wire_message){.kind = WIRE_DATASET,
                                       .dataset = {.name = text_of("train"),
                                                   .records = plan->records,
                                                   .epochs = plan->epochs,
                                                   .batch = plan->batch,
                                                   .micro_batches = plan->micro_batches,
                                                   .block = plan->shuffle,
                                                   .set_aside = job->config.set_aside,
                                                   .per_worker = plan->per_worker,
                                                   .seed = plan->seed}});
}

/* ---- Its steps ---- */

struct plan_step trainer_step(struct job *job, const struct process *p, uint64_t version)
{
    const struct trainer *t = &p->trainer;
    struct plan_step step = plan_step(&t->plan, version);
    struct first_try *before = &job->tries[version - 1];
    if (before->step.version == 0 || before->lineage < t->core.lineage) {
        *before = (struct first_try){t->core.lineage, step};
    }
    bool alike = before->step.epoch == step.epoch && before->step.first == step.first &&
                 before->step.count == step.count;
    if (before->lineage == t->core.lineage && !alike) {
        job_break(job, "a step that is tried again has the same records");
    }
    return step;
}

static struct shard_range range_of(struct job *job, const struct process *p, uint64_t version)
{
    struct plan_step step = trainer_step(job, p, version);
    return plan_step_range(&p->trainer.plan, &step);
}

void trainer_check(struct job *job, const struct process *p)
{
    const struct trainer *t = &p->trainer;
    if (t->model != t->core.version || t->trained != plan_records_done(&t->plan, t->model)) {
        job_break(job, "a generation begins where the model ends");
    }
}

static void say_commit(struct job *job, struct process *p, uint64_t version)
{
    struct shard_range range = range_of(job, p, version);
    const struct wire_step step = {.version = version, .ranges = {&range, 1}};
    process_say(job, p,
                &(struct wire_message){
                    .kind = WIRE_COMMITS,
                    .commits = {.generation = p->trainer.core.generation, .steps = {&step, 1}}});
}

static void say_report(struct job *job, struct process *p, const struct commit_effect *effect)
{
    const struct commit_member *core = &p->trainer.core;
    struct wire_step steps[RECORDS_MAX * EPOCHS_MAX], prepared;
    struct shard_range ranges[RECORDS_MAX * EPOCHS_MAX], last;
    struct wire_message m = {.kind = WIRE_REPORT,
                             .report = {.generation = core->generation,
                                        .version = core->version,
                                        .lost = effect->incarnation,
                                        .ended = effect->ended,
                                        .closed = core->stage == COMMIT_CLOSED,
                                        .loaded = core->loaded}};
    for (uint64_t v = core->acked + 1; v <= core->version; v++) {
        uint32_t i = m.report.steps.count++;
        ranges[i] = range_of(job, p, v);
        steps[i] = (struct wire_step){.version = v, .ranges = {&ranges[i], 1}};
    }
    m.report.steps.list = steps;
    if (core->prepared) {
        last = range_of(job, p, core->version + 1);
        prepared = (struct wire_step){.version = core->version + 1, .ranges = {&last, 1}};
        m.report.prepared = (struct wire_steps){&prepared, 1};
    }
    process_say(job, p, &m);
}
/* ---- Effects ---- */

static void apply(struct job *job, struct process *p, uint64_t version)
{
    struct trainer *t = &p->trainer;
    if (!t->core.loaded || t->loading || t->restoring) {
        job_break(job, "a step is applied to a model only");
    }
    if (t->model + 1 != version) {
        job_break(job, "steps are applied in their order, each once");
    }
    struct shard_range range = range_of(job, p, version);
    if (t->trained != range.epoch * t->plan.records + range.first) {
        job_break(job, "records are trained in their order, each once an epoch");
    }
    t->model = version;
    t->trained += range.count;
}

static void form(struct job *job, struct process *p, const struct wire_open *open)
{
    struct trainer *t = &p->trainer;
    t->member_count = open->members.count;
    t->plan.anchor = open->anchor;
    if (!plan_anchor_fits(&t->plan, &open->anchor, open->base) ||
        plan_full(&t->plan) != t->plan.micro_batches * (t->plan.per_worker ? t->member_count : 1)) {
        job_break(job, "steps are as large as their generation makes them");
        return;
    }
    if (t->core.loaded && !open->restore) {
        trainer_check(job, p);
    }
    t->suspect_count = open->suspects.count;
    t->computing_count = 0;
    for (uint32_t i = 0; i < t->member_count; i++) {
        const struct wire_member *member = &open->members.list[i];
        t->members[i] = member->incarnation;
        if (member->loaded || open->restore) { /* a member without the model only enters */
            t->computing[t->computing_count++] = member->incarnation;
        }
    }
    for (uint32_t i = 0; i < t->suspect_count; i++) {
        t->suspects[i] = open->suspects.list[i];
    }
    t->aside_count = open->aside.count;
    t->poison_is_aside = false;
    for (uint32_t i = 0; i < open->aside.count; i++) {
        int64_t record = (int64_t)open->aside.list[i].first;
        t->poison_is_aside = t->poison_is_aside || record == job->config.poison;
    }
    plane_gather(job, p);
}

static void begin_restore(struct process *p, const struct wire_open *open)
{
    snprintf(p->trainer.checkpoint, sizeof p->trainer.checkpoint, "%.*s",
             (int)open->checkpoint.count, open->checkpoint.bytes);
    p->trainer.restoring = true;
    p->trainer.loading = false;
}

static void finish(struct job *job, struct process *p)
{
    if (p->trainer.model != plan_steps(&p->trainer.plan)) {
        job_break(job, "who ends well has trained all records");
    }
    if (!coordinator_has_all(job, p->trainer.model)) {
        job_break(job, "who ends well leaves all steps in the journal");
    }
    p->finished = true;
    process_die(job, p, ARBITER_CAUSE_ENDED);
    p->life = LIFE_ENDED;
}

static void carry_out(struct job *job, struct process *p, const struct commit_effect *effect,
                      const struct wire_open *open)
{
    struct trainer *t = &p->trainer;
    struct wire_message m = {.kind = WIRE_JOIN};
    switch (effect->kind) {
    case COMMIT_DO_JOIN: process_say(job, p, &m); break;
    case COMMIT_DO_LEAVE:
        m = (struct wire_message){.kind = WIRE_LEAVE, .leave.finished = effect->finished};
        process_say(job, p, &m);
        break;
    case COMMIT_DO_COMMITS: say_commit(job, p, effect->version); break;
    case COMMIT_DO_REPORT: say_report(job, p, effect); break;
    case COMMIT_DO_ENTER:
        t->entered[p->incarnation - 1] = effect->version;
        plane_show(job, p);
        break;
    case COMMIT_DO_BARRIER:
        t->barrier[p->incarnation - 1] = effect->version;
        plane_show(job, p);
        break;
    case COMMIT_DO_APPLY: apply(job, p, effect->version); break;
    case COMMIT_DO_ABORT: t->loading = t->restoring = false; break;
    case COMMIT_DO_FORM: form(job, p, open); break;
    case COMMIT_DO_LOAD: t->loading = true; break;
    case COMMIT_DO_RESTORE: begin_restore(p, open); break;
    case COMMIT_DO_FINISH: finish(job, p); break;
    case COMMIT_DO_FAIL: job_break(job, "a member can follow the decision"); break;
    case COMMIT_DO_DISCARD: /* the records of a step are in the plan */
    case COMMIT_DO_TRIM:
    case COMMIT_DO_KEEP:
    case COMMIT_DO_REJOIN: break; /* the message says why */
    }
}

void trainer_tell(struct job *job, struct process *p, struct commit_event event,
                  const struct wire_open *open)
{
    struct commit_member *core = &p->trainer.core;
    struct commit_effects effects;
    commit_member_step(core, &event, &effects);
    for (size_t i = 0; i < effects.count && !job->broken; i++) {
        carry_out(job, p, &effects.list[i], open);
    }
    if (process_lives(p) && commit_member_check(core)) {
        job_break(job, commit_member_check(core));
    }
    if (process_lives(p) && core->generation > 0 && core->loaded && !core->complete &&
        !p->trainer.loading && !p->trainer.restoring &&
        core->version == plan_steps(&p->trainer.plan) && !job->broken) {
        trainer_tell(job, p, (struct commit_event){.kind = COMMIT_COMPLETE}, NULL);
    }
}
/* ---- Messages that it receives ---- */

static void connected(struct job *job, struct process *p, const struct wire_dataset *told)
{
    p->link.declared = true;
    job->plan.dataset = p->trainer.plan.dataset = told->number;
    if (told->max_steps != job->config.max_steps) {
        job_break(job, "each worker hears of the limit of steps");
    }
    trainer_tell(job, p, (struct commit_event){.kind = COMMIT_CONNECTED, .term = p->term}, NULL);
    if (p->trainer.at_hand.count > 0 && process_lives(p)) {
        pass_tell(job, p, p->trainer.at_hand);
    }
}

/* The process starts again as another incarnation, unless it is to end. */
static void expelled(struct job *job, struct process *p, const struct wire_expelled *told,
                     uint64_t term)
{
    bool ends = told->reason == RENDEZVOUS_LEFT || told->reason == RENDEZVOUS_DONE ||
                told->reason == RENDEZVOUS_FAILED;
    trainer_tell(job, p,
                 (struct commit_event){
                     .kind = COMMIT_EXPELLED, .term = term, .incarnation = told->incarnation},
                 NULL);
    if (told->reason == RENDEZVOUS_FAILED && !job->coordinator.failed) {
        job_break(job, "a job that has failed stays so");
    }
    process_die(job, p, ARBITER_CAUSE_OUTSIDE);
    p->life = LIFE_ENDED;
    p->buried = true; /* the process goes on, or ends by itself */
    if (!ends && job->life_count < LIVES_MAX) {
        (void)job_launch(job, p->place);
    }
}

void trainer_hear(struct job *job, struct process *p, const struct wire_message *m)
{
    struct commit_event event = {.term = m->term};
    switch ((int)m->kind) {
    case WIRE_DATASET: connected(job, p, &m->dataset); return;
    case WIRE_REFUSED: /* the job is done, or its state is lost */
        process_die(job, p, ARBITER_CAUSE_OUTSIDE);
        p->life = LIFE_ENDED;
        return;
    case WIRE_CHECKPOINT:
    case WIRE_GRANT: return;
    case WIRE_EXPELLED:
        if (m->expelled.incarnation == p->incarnation && m->term >= p->trainer.core.term) {
            expelled(job, p, &m->expelled, m->term);
        }
        return;
    case WIRE_OPEN:
        event.kind = COMMIT_OPEN;
        event.generation = m->open.generation;
        event.version = m->open.base;
        event.lineage = m->open.lineage;
        event.restore = m->open.restore;
        trainer_tell(job, p, event, &m->open);
        return;
    case WIRE_CLOSE:
        event.kind = COMMIT_CLOSE;
        event.generation = m->close.generation;
        event.boundary = m->close.boundary;
        break;
    case WIRE_ACK:
        event.kind = COMMIT_ACK;
        event.version = m->ack.version;
        break;
    default: job_break(job, "a member hears what is meant for members"); return;
    }
    trainer_tell(job, p, event, NULL);
}
/* ---- Which actions are possible ---- */

bool trainer_may(const struct job *job, const struct process *p, enum action_kind kind)
{
    const struct trainer *t = &p->trainer;
    const struct commit_member *core = &t->core;
    bool inside = core->stage == COMMIT_WORKING || core->stage == COMMIT_PREPARED;
    switch ((int)kind) {
    case ACT_COMPUTE: return t->at_hand.count > 0 || (pass_may_begin(t) && !pass_all_done(p));
    case ACT_ENTER:
        return t->at_hand.count == 0 && core->stage == COMMIT_WORKING && !core->entered &&
               !core->complete &&
               (pass_share(p).count > 0 ? pass_may_begin(t) && pass_all_done(p)
                                        : pass_may_begin(t) || plane_any_entered(t));
    case ACT_REDUCE:
        return core->stage == COMMIT_WORKING && core->entered && !core->reduced &&
               plane_all_have(t, t->entered);
    case ACT_PASS:
        return core->prepared && core->stage == COMMIT_PREPARED && plane_all_have(t, t->barrier);
    case ACT_RESTORE: return t->restoring && inside;
    case ACT_SAVE:
        return job->file_count < job->config.checkpoints && inside && core->loaded &&
               p->link.declared && core->version > 0 && !t->restoring && !t->loading &&
               !core->complete;
    default: return false;
    }
}

bool trainer_may_lose(const struct process *p, const struct process *other)
{
    const struct commit_member *core = &p->trainer.core;
    bool inside = core->stage == COMMIT_WORKING || core->stage == COMMIT_PREPARED;
    return !p->leases && p->life == LIFE_RUNNING && inside && p != other &&
           plane_has(&p->trainer, other->incarnation);
}

bool trainer_may_load(const struct process *p, const struct process *other)
{
    const struct commit_member *core = &p->trainer.core;
    return p->trainer.loading && p != other && other->life == LIFE_RUNNING &&
           plane_joins(p, other) && other->trainer.core.loaded &&
           other->trainer.core.version == core->version && !other->trainer.restoring &&
           other->trainer.core.stage != COMMIT_OVER;
}

static void of_generation(struct job *job, struct process *p, enum commit_event_kind kind,
                          uint64_t version)
{
    trainer_tell(job, p,
                 (struct commit_event){
                     .kind = kind, .generation = p->trainer.core.generation, .version = version},
                 NULL);
}

void trainer_lose(struct job *job, struct process *p, const struct process *other, bool doubts)
{
    bool closed = other->life == LIFE_RUNNING && !doubts;
    trainer_tell(job, p,
                 (struct commit_event){.kind = COMMIT_LOST,
                                       .generation = p->trainer.core.generation,
                                       .incarnation = closed ? 0 : other->incarnation,
                                       .ended = !process_lives(other)},
                 NULL);
}

void trainer_load(struct job *job, struct process *p, const struct process *other)
{
    if (other->trainer.model != p->trainer.core.version) {
        job_break(job, "a joiner reads the model of its version");
    }
    p->trainer.model = other->trainer.model;
    p->trainer.trained = other->trainer.trained;
    trainer_check(job, p);
    p->trainer.loading = false;
    of_generation(job, p, COMMIT_LOADED, p->trainer.core.version);
}

void trainer_act(struct job *job, struct process *p, enum action_kind kind)
{
    uint64_t next = p->trainer.core.version + 1;
    switch ((int)kind) {
    case ACT_COMPUTE:
        if (p->trainer.at_hand.count > 0) {
            pass_end(job, p);
        } else {
            pass_begin(job, p);
        }
        break;
    case ACT_ENTER: of_generation(job, p, COMMIT_READY, 0); break;
    case ACT_REDUCE: of_generation(job, p, COMMIT_REDUCED, next); break;
    case ACT_PASS: of_generation(job, p, COMMIT_PASSED, next); break;
    case ACT_RESTORE: checkpoint_restore(job, p); break;
    case ACT_SAVE: checkpoint_save(job, p); break;
    default: break;
    }
}
