/* elastic_journal FOLDER: prints the records of each committed step of an elastic job, from the
 * journal of its coordinator, which has ended: a line "pass VERSION MICRO_BATCH RECORD…" for each
 * micro-batch, in their order. Steps that a restore has cut off are left out. A journal that was
 * compacted is refused, because it has no steps any more.
 */
#include "coordinator/journal/journal.h"
#include "base/cleanup.h"
#include "client/plan/plan.h"
#include "coordinator/arbiter/entry.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEPS_MAX = 1 << 20, BATCH_MAX = 1 << 16 };

struct steps {
    struct plan plan;
    struct shard_range *ranges; /* of each version, from 1 */
    uint64_t count;
    uint32_t datasets;
};

static int add_steps(struct steps *s, const struct wire_message *commits, struct muster_err *err)
{
    for (uint32_t i = 0; i < commits->commits.steps.count; i++) {
        const struct wire_step *step = &commits->commits.steps.list[i];
        if (step->version != s->count + 1 || step->ranges.count != 1 || s->count == STEPS_MAX) {
            return muster_fail(err, MUSTER_EDATA,
                               "step %" PRIu64 " of %u ranges follows step %" PRIu64, step->version,
                               step->ranges.count, s->count);
        }
        s->ranges[s->count++] = step->ranges.list[0];
    }
    return 0;
}

static int add_generation(struct steps *s, const struct journal_record *record,
                          struct wire_room *room, struct muster_err *err)
{
    struct entry_generation generation;
    int r = entry_read_generation(record->bytes, record->count, room, &generation, err);
    if (r == 0 && generation.open.open.restore && generation.open.open.base < s->count) {
        s->count = generation.open.open.base;
    }
    return r == 0 && generation.commits ? add_steps(s, &generation.step, err) : r;
}

static int add_dataset(struct steps *s, const struct journal_record *record, struct muster_err *err)
{
    struct shard_dataset spec;
    int r = entry_read_dataset(record->bytes, record->count, &spec, err);
    if (r == 0 && spec.micro_batches > 0) {
        s->plan = (struct plan){.records = spec.size,
                                .seed = spec.seed,
                                .epochs = spec.epochs,
                                .batch = spec.batch,
                                .micro_batches = spec.micro_batches,
                                .shuffle = spec.block,
                                .dataset = s->datasets};
    }
    s->datasets++;
    return r;
}

static int add_record(struct steps *s, const struct journal_record *record, struct muster_err *err)
{
    struct wire_room room = {malloc(WIRE_ROOM_BYTES(record->count) + 1),
                             WIRE_ROOM_BYTES(record->count), 0};
    struct wire_message message;
    int r = room.memory ? 0 : muster_fail(err, MUSTER_ENOMEM, "no memory");
    switch (r == 0 ? record->kind : 0) {
    case ENTRY_DATASET: r = add_dataset(s, record, err); break;
    case ENTRY_GENERATION: r = add_generation(s, record, &room, err); break;
    case ENTRY_STEPS:
        r = entry_read_message(record->bytes, record->count, WIRE_COMMITS, &room, &message, err);
        r = r < 0 ? r : add_steps(s, &message, err);
        break;
    case ENTRY_SNAPSHOT:
    case ENTRY_ASIDE:
        r = muster_fail(err, MUSTER_EUNSUPPORTED, "a record of kind %u", record->kind);
    default: break;
    }
    free(room.memory);
    return r;
}

static int print_step(const struct steps *s, uint64_t version, struct muster_err *err)
{
    static uint64_t records[BATCH_MAX];
    struct shard_range left = s->ranges[version - 1];
    uint32_t batch = s->plan.batch;
    if (batch == 0 || batch > BATCH_MAX || left.dataset != s->plan.dataset ||
        shard_range_end(left) > s->plan.records) {
        return muster_fail(err, MUSTER_EDATA, "step %" PRIu64 " is none of the plan", version);
    }
    for (int micro_batch = 0; left.count > 0; micro_batch++) {
        struct shard_range part = left;
        part.count = left.count < batch ? left.count : batch;
        left.first += part.count;
        left.count -= part.count;
        plan_records(&s->plan, part, records);
        printf("pass %" PRIu64 " %d", version, micro_batch);
        for (uint32_t i = 0; i < part.count; i++) {
            printf(" %" PRIu64, records[i]);
        }
        printf("\n");
    }
    return 0;
}

int main(int count, char **words)
{
    struct muster_err err = MUSTER_ERR_INIT;
    struct steps s = {.ranges = calloc(STEPS_MAX, sizeof *s.ranges)};
    struct journal *journal = NULL;
    struct journal_record record;
    if (count != 2 || !s.ranges) {
        return 64;
    }
    int r = journal_open(&(struct journal_options){.folder = words[1]}, &journal, &err);
    while (r == 0 && journal_read(journal, &record)) {
        r = add_record(&s, &record, &err);
    }
    for (uint64_t version = 1; r == 0 && version <= s.count; version++) {
        r = print_step(&s, version, &err);
    }
    if (r < 0) {
        (void)fprintf(stderr, "elastic_journal: %s\n", err.text);
    }
    journal_close(journal);
    free(s.ranges);
    return r < 0 ? 1 : 0;
}
