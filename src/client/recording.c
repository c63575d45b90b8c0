/* See recording.h. */
#include "client/recording.h"

#include "commit/code.h"

#include <stdlib.h>
#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

void recording_begin(struct muster_elastic *job)
{
    job->recording = recording_open("worker");
    if (job->recording) {
        recording_write_numbers(job->recording, RECORDING_MEMBER, &job->incarnation, 1);
    }
}

void recording_note_plan(const struct muster_elastic *job)
{
    const struct plan *p = &job->plan;
    const uint64_t fields[] = {p->records,        p->seed,          p->epochs,
                               p->batch,          p->micro_batches, p->shuffle,
                               p->dataset,        p->max_steps,     p->per_worker,
                               p->anchor.version, p->anchor.epoch,  p->anchor.position,
                               p->anchor.next,    p->anchor.later};
    if (job->recording) {
        recording_write_numbers(job->recording, RECORDING_PLAN, fields, LENGTH(fields));
    }
}

void recording_note_step(const struct muster_elastic *job, const struct commit_event *event,
                         const struct commit_effects *effects)
{
    uint8_t bytes[COMMIT_CODE_BYTES_MAX];
    if (job->recording) {
        size_t count = commit_code(event, effects, &job->core, bytes);
        recording_write(job->recording, RECORDING_COMMIT, bytes, count);
    }
}

void recording_note_pass(const struct muster_elastic *job, const struct muster_elastic_pass *pass,
                         struct shard_range range)
{
    const uint64_t head[] = {pass->version,        pass->generation,  (uint64_t)pass->rank,
                             (uint64_t)pass->size, pass->micro_batch, range.first,
                             range.count};
    size_t count = LENGTH(head) + pass->record_count;
    uint64_t *fields = job->recording ? malloc(count * sizeof *fields) : NULL;
    if (fields) {
        memcpy(fields, head, sizeof head);
        memcpy(fields + LENGTH(head), pass->records, pass->record_count * sizeof *fields);
        recording_write_numbers(job->recording, RECORDING_PASS, fields, count);
    }
    free(fields);
}
