/* What a worker of the planned data set computes, pass by pass, as src/client does, and its
 * checkpoints. See job.h. */
#include "job.h"

#include <stdio.h>
#include <string.h>

/* ---- Passes ---- */

void pass_tell(struct job *job, struct process *p, struct shard_range range)
{
    p->trainer.told = range;
    if (p->link.declared) {
        process_say(job, p,
                    &(struct wire_message){
                        .kind = WIRE_PASS,
                        .pass = {p->trainer.pass_generation, {&range, range.count > 0}}});
    }
}

struct plan_share pass_share(const struct process *p)
{
    const struct trainer *t = &p->trainer;
    bool more = t->core.version < plan_steps(&t->plan);
    for (uint32_t rank = 0; more && rank < t->computing_count; rank++) {
        if (t->computing[rank] == p->incarnation) {
            struct plan_step step = plan_step(&t->plan, t->core.version + 1);
            return plan_share(step.micro_batches, rank, t->computing_count);
        }
    }
    return (struct plan_share){0, 0};
}

static bool is_new_step(const struct trainer *t)
{
    return t->pass_generation != t->core.generation || t->pass_version != t->core.version + 1;
}

bool pass_may_begin(const struct trainer *t)
{
    return t->core.stage == COMMIT_WORKING && t->core.loaded && !t->core.complete &&
           !t->core.entered && !t->loading && !t->restoring;
}

bool pass_all_done(const struct process *p)
{
    struct plan_share share = pass_share(p);
    return share.count == 0 ||
           (!is_new_step(&p->trainer) && p->trainer.micro_batch == share.first + share.count);
}

/* Returns the next part of a micro-batch: suspects begin and end where parts do. */
static struct shard_range part_of(const struct trainer *t, struct shard_range micro_batch,
                                  uint32_t done)
{
    uint64_t first = micro_batch.first + done, end = shard_range_end(micro_batch);
    for (uint32_t i = 0; i < t->suspect_count; i++) {
        uint64_t edges[] = {t->suspects[i].first, shard_range_end(t->suspects[i])};
        bool same = shard_range_same_epoch(t->suspects[i], micro_batch);
        for (int e = 0; same && e < 2; e++) {
            end = edges[e] > first && edges[e] < end ? edges[e] : end;
        }
    }
    micro_batch.first = first;
    micro_batch.count = (uint32_t)(end - first);
    return micro_batch;
}

static bool is_told(const struct job *job, const struct process *p, struct shard_range range)
{
    for (uint32_t i = 0; i < p->trainer.suspect_count; i++) {
        if (shard_range_overlaps(p->trainer.suspects[i], range)) {
            return true;
        }
    }
    return job->config.long_steps;
}

void pass_begin(struct job *job, struct process *p)
{
    struct trainer *t = &p->trainer;
    if (is_new_step(t)) {
        t->pass_generation = t->core.generation;
        t->pass_version = t->core.version + 1;
        t->micro_batch = pass_share(p).first;
        t->done = 0;
    }
    struct plan_step step = trainer_step(job, p, t->pass_version);
    t->at_hand = part_of(t, plan_micro_batch(&t->plan, &step, t->micro_batch), t->done);
    t->informed = coordinator_has_told(job, p);
    if (is_told(job, p, t->at_hand)) {
        pass_tell(job, p, t->at_hand);
    }
}

void pass_end(struct job *job, struct process *p)
{
    struct trainer *t = &p->trainer;
    struct shard_range range = t->at_hand;
    int64_t poison = job->config.poison;
    if (poison >= (int64_t)range.first && poison < (int64_t)shard_range_end(range) &&
        range.epoch == 0 && !t->poison_is_aside) {
        job->informed_crashes += t->informed;
        process_die(job, p, ARBITER_CAUSE_OWN);
        return;
    }
    t->at_hand.count = 0;
    if (t->told.count > 0) {
        pass_tell(job, p, t->at_hand);
    }
    if (!is_new_step(t)) {
        struct plan_step step = plan_step(&t->plan, t->pass_version);
        t->done += range.count;
        if (t->done == plan_micro_batch(&t->plan, &step, t->micro_batch).count) {
            t->micro_batch++;
            t->done = 0;
        }
    }
}

/* ---- Checkpoints ---- */

void checkpoint_save(struct job *job, struct process *p)
{
    const struct commit_member *core = &p->trainer.core;
    struct file *file = &job->files[job->file_count++];
    file->version = p->trainer.model;
    file->trained = p->trainer.trained;
    snprintf(file->path, sizeof file->path, "checkpoint-%zu", job->file_count);
    process_say(
        job, p,
        &(struct wire_message){.kind = WIRE_CHECKPOINT,
                               .checkpoint = {.generation = core->generation,
                                              .version = core->version,
                                              .path = {file->path, (uint32_t)strlen(file->path)}}});
}

static const struct file *file_at(const struct job *job, const char *path)
{
    for (size_t i = 0; i < job->file_count; i++) {
        if (strcmp(job->files[i].path, path) == 0) {
            return &job->files[i];
        }
    }
    return NULL;
}

static void say_unreadable(struct job *job, struct process *p)
{
    const struct commit_member *core = &p->trainer.core;
    process_say(job, p,
                &(struct wire_message){.kind = WIRE_CHECKPOINT_FAILED,
                                       .checkpoint_failed = {.generation = core->generation,
                                                             .version = core->version,
                                                             .reading = true}});
}

void trainer_beat(struct job *job, struct process *p)
{
    struct wire_message m = {.kind = WIRE_PROGRESS};
    process_say(job, p, &m);
    if (p->trainer.refused == p->trainer.core.generation) { /* the message may have been lost */
        say_unreadable(job, p);
    }
}

void checkpoint_restore(struct job *job, struct process *p)
{
    struct trainer *t = &p->trainer;
    const struct file *file = file_at(job, t->checkpoint);
    if (t->checkpoint[0] && (!file || file->version != t->core.version)) {
        job_break(job, "a checkpoint that the job goes back to is that of its version");
    } else if (!t->checkpoint[0] && t->core.version > 0) {
        job_break(job, "the model as it was at first is version 0");
    } else if (file && file->damaged) {
        t->restoring = false; /* others may read it: it waits for the coordinator's answer */
        t->refused = t->core.generation;
        say_unreadable(job, p);
    } else {
        t->restoring = false;
        t->model = file ? file->version : 0;
        t->trained = file ? file->trained : 0;
        trainer_check(job, p);
        trainer_tell(job, p,
                     (struct commit_event){.kind = COMMIT_LOADED,
                                           .generation = t->core.generation,
                                           .version = t->core.version},
                     NULL);
    }
}
