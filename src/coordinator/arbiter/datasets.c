/* Data sets: the first worker that names one declares it, and all others must give the same
 * values. See internal.h. */
#include "coordinator/arbiter/internal.h"

#include "base/err.h"

#include <stdio.h>
#include <string.h>

/* ---- Data sets of the job ---- */

static void declare(struct arbiter *a, const struct shard_dataset *spec, bool *ret_added)
{
    size_t offset = a->out->bytes.used;
    arbiter_fail(a, ledger_add(&a->ledger, spec, ret_added, a->err));
    if (!a->failed && *ret_added) {
        entry_write_dataset(spec, &a->out->bytes);
        arbiter_append(a, ENTRY_DATASET, offset);
    }
}

/* The first limit holds as long as the job continues, because its workers know it. */
static void declare_limit(struct arbiter *a)
{
    uint64_t known = a->ledger.max_steps;
    if (a->max_steps == 0 || a->max_steps == known) {
        return;
    }
    if (known == 0 && a->rendezvous->term == 0) {
        size_t offset = a->out->bytes.used;
        a->ledger.max_steps = a->max_steps;
        entry_write_number(a->max_steps, &a->out->bytes);
        arbiter_append(a, ENTRY_MAX_STEPS, offset);
        return;
    }
    char text[ARBITER_WHY_BYTES] = "with its last epoch";
    if (known > 0) {
        snprintf(text, sizeof text, "with step %llu", (unsigned long long)known);
    }
    arbiter_fail(a, muster_fail(a->err, MUSTER_EINVAL,
                                "the job of this journal ends %s, and cannot end with step %llu "
                                "now: begin another one, in another folder",
                                text, (unsigned long long)a->max_steps));
}

void arbiter_datasets_declare(struct arbiter *a)
{
    declare_limit(a);
    for (size_t i = 0; i < a->dataset_count && !a->failed; i++) {
        bool added = false;
        declare(a, &a->datasets[i], &added);
    }
}

/* ---- The data set of a member ---- */

bool arbiter_datasets_find(const struct shard_state *shard, const struct wire_text *name,
                           uint32_t *ret_number, struct shard_dataset *ret)
{
    struct shard_progress progress;
    uint32_t i = 0;
    for (; shard_progress(shard, i, &progress); i++) {
        const char *known = progress.dataset.name;
        if (strlen(known) == name->count && memcmp(known, name->bytes, name->count) == 0) {
            *ret_number = i;
            *ret = progress.dataset;
            return true;
        }
    }
    *ret_number = i;
    return false;
}

void arbiter_datasets_read(const struct wire_dataset *told, uint32_t micro_batches,
                           struct shard_dataset *ret)
{
    *ret = (struct shard_dataset){.task = (enum shard_task)told->task,
                                  .size = told->records,
                                  .epochs = told->epochs,
                                  .seed = told->seed,
                                  .block = told->block,
                                  .batch = told->batch,
                                  .micro_batches = micro_batches,
                                  .set_aside = told->set_aside};
    memcpy(ret->name, told->name.bytes, told->name.count);
}

static uint32_t per_worker(const struct shard_dataset *spec)
{
    return spec->per_worker ? spec->micro_batches : 0;
}

bool arbiter_datasets_agree(const struct shard_dataset *theirs, const struct shard_dataset *job,
                            char *ret_why)
{
    const struct {
        const char *name;
        uint64_t theirs, job;
    } fields[] = {
        {"task", theirs->task, job->task},
        {"records", theirs->size, job->size},
        {"epochs", theirs->epochs, job->epochs},
        {"batch", theirs->batch, job->batch},
        {"micro_batches_per_worker", per_worker(theirs), per_worker(job)},
        {"micro_batches", theirs->micro_batches, job->micro_batches},
        {"shuffle", theirs->block, job->block},
        {"seed", theirs->seed, job->seed},
        {"set_aside", theirs->set_aside, job->set_aside},
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (fields[i].theirs != fields[i].job) {
            snprintf(ret_why, ARBITER_WHY_BYTES,
                     "data set \"%s\" has %s %llu here, and %llu in the job: all workers of a job "
                     "are started alike",
                     job->name, fields[i].name, (unsigned long long)fields[i].theirs,
                     (unsigned long long)fields[i].job);
            return false;
        }
    }
    return true;
}

/* Whether the job can have this data set, too: the steps of the log belong to one data set, from
 * the first generation on. */
static bool has_room_beside(const struct arbiter *a, const struct shard_dataset *spec)
{
    struct shard_progress other;
    bool alone = !spec->per_worker || a->rendezvous->generation == 0;
    for (uint32_t i = 0; alone && shard_progress(a->ledger.shard, i, &other); i++) {
        alone = !spec->per_worker && !other.dataset.per_worker;
    }
    return alone;
}

/* Whether a member may declare the data set. Members may send anything, but the job's options are
 * right. */
static bool may_declare(const struct arbiter *a, const struct shard_dataset *spec, uint32_t number,
                        char *ret_why)
{
    if (a->over || a->rendezvous->complete) {
        snprintf(ret_why, ARBITER_WHY_BYTES,
                 "data set \"%s\" comes too late: all records of the job are "
                 "trained",
                 spec->name);
    } else if (number >= SHARD_DATASETS_MAX) {
        snprintf(ret_why, ARBITER_WHY_BYTES, "data set \"%s\": the job has %d already", spec->name,
                 SHARD_DATASETS_MAX);
    } else if (spec->task >= SHARD_TASKS || spec->size > SHARD_SIZE_MAX ||
               (uint64_t)spec->batch * spec->micro_batches > UINT32_MAX) {
        snprintf(ret_why, ARBITER_WHY_BYTES, "data set \"%s\": %s", spec->name,
                 shard_reason_text(SHARD_BAD_REQUEST));
    } else if (!has_room_beside(a, spec)) {
        snprintf(
            ret_why, ARBITER_WHY_BYTES,
            "data set \"%s\": where micro_batches_per_worker is given, a job has no other data "
            "set that is trained step by step",
            spec->name);
    } else {
        return true;
    }
    return false;
}

void arbiter_datasets_answer(struct arbiter *a, uint64_t to, const struct shard_dataset *spec,
                             uint32_t number)
{
    struct wire_message message = {.kind = WIRE_DATASET,
                                   .dataset = {.name = {spec->name, (uint32_t)strlen(spec->name)},
                                               .number = number,
                                               .task = spec->task,
                                               .records = spec->size,
                                               .epochs = spec->epochs,
                                               .batch = spec->batch,
                                               .micro_batches = spec->micro_batches,
                                               .block = spec->block,
                                               .seed = spec->seed,
                                               .set_aside = spec->set_aside,
                                               .per_worker = spec->per_worker,
                                               .max_steps = a->ledger.max_steps}};
    arbiter_send(a, to, &message);
}

void arbiter_datasets_hear(struct arbiter *a, const struct wire_dataset *told)
{
    struct shard_dataset job = {0};
    char why[ARBITER_WHY_BYTES];
    uint32_t number;
    bool added = false, says = told->micro_batches > 0;
    bool known = arbiter_datasets_find(a->ledger.shard, &told->name, &number, &job);
    uint32_t settled = known ? job.micro_batches : a->micro_batches;
    struct shard_dataset spec;
    arbiter_datasets_read(told, says ? told->micro_batches : settled, &spec);
    spec.per_worker = says ? told->per_worker : job.per_worker;
    if (known ? !arbiter_datasets_agree(&spec, &job, why) : !may_declare(a, &spec, number, why)) {
        arbiter_refuse(a, a->event->incarnation, why);
        return;
    }
    if (!known) {
        declare(a, &spec, &added);
    }
    arbiter_datasets_answer(a, a->event->incarnation, &spec, number);
}
