/* Records that workers by leases die of. The records that a worker held when it crashed are
 * suspected, and granted alone in parts (shard/suspects.c): the third death names a record. It is
 * set aside, and the journal has it, or the job fails. The journal does not have suspected records.
 * See leasing.h. */
#include "coordinator/arbiter/leasing.h"

#include "base/err.h"
#include "coordinator/arbiter/internal.h"

#include <inttypes.h>

enum { TEXT_BYTES = 1024, NUMBER_BYTES = 8, ASIDE_BYTES = 4 * NUMBER_BYTES };

/* ---- Deaths ---- */

static void blame(struct arbiter *a, uint64_t owner)
{
    struct shard_part parts[SHARD_PARTS_MAX];
    const struct shard_range *last = NULL;
    size_t count = 0;
    while (count < SHARD_PARTS_MAX &&
           shard_held_next(a->leases.shard, owner, last, &parts[count].range)) {
        parts[count].owner = owner;
        last = &parts[count++].range;
    }
    if (count > 0) {
        (void)leases_tell(
            a, &(struct shard_event){.kind = SHARD_BLAME, .parts = parts, .part_count = count});
    }
}

/* Whether the death is a good end. A worker whose data set is done may end without LEAVE. */
static bool has_ended_well(const struct arbiter *a, const struct lease_owner *owner,
                           enum arbiter_cause cause)
{
    struct shard_progress data;
    return cause == ARBITER_CAUSE_ENDED && shard_progress(a->leases.shard, owner->dataset, &data) &&
           data.epoch == data.dataset.epochs;
}

void leases_die(struct arbiter *a, uint64_t incarnation, enum arbiter_cause cause,
                enum rendezvous_reason reason)
{
    struct lease_owner *owner = leases_owner(&a->leases, incarnation);
    if (!owner) {
        return;
    }
    owner->dying = true;
    (void)leases_tell(a, &(struct shard_event){.kind = SHARD_STOP, .owner = incarnation});
    owner = leases_owner(&a->leases, incarnation); /* its lease may have ended meanwhile, too */
    if (!owner) {
        return;
    }
    if (cause == ARBITER_CAUSE_PENDING && shard_held(a->leases.shard, incarnation) > 0) {
        return;
    }
    if (!has_ended_well(a, owner, cause)) {
        arbiter_lose(a, ARBITER_LEASER_LOST, incarnation, reason);
    }
    if (cause != ARBITER_CAUSE_OUTSIDE) {
        blame(a, incarnation);
    }
    leases_put_out(a, incarnation);
}

void leases_settle_death(struct arbiter *a, uint64_t incarnation, enum arbiter_cause cause)
{
    const struct lease_owner *owner = leases_owner(&a->leases, incarnation);
    if (owner && owner->dying) {
        leases_die(a, incarnation, cause, RENDEZVOUS_DIED);
    }
}

/* ---- Named records ---- */

static void append_aside(struct arbiter *a, uint64_t position)
{
    size_t offset = a->out->bytes.used;
    asides_write(&a->leases.asides, a->leases.asides.count - 1, &a->out->bytes);
    entry_write_number(position, &a->out->bytes);
    arbiter_append(a, ENTRY_LEASE_ASIDE, offset);
    a->leases.appended = true;
}

void leases_name(struct arbiter *a, const struct shard_effect *named)
{
    struct shard_progress data;
    struct buf why;
    buf_init(&why, TEXT_BYTES);
    (void)shard_progress(a->leases.shard, named->dataset, &data);
    arbiter_blame_say(&data.dataset, named->range, (uint32_t)named->count, &why);
    const struct aside aside = {.dataset = named->dataset,
                                .epoch = named->range.epoch,
                                .record = named->record,
                                .deaths = (uint32_t)named->count};
    if (named->kind == SHARD_SET_ASIDE && asides_add(&a->leases.asides, &aside)) {
        append_aside(a, named->range.first);
        arbiter_blame_say_aside(a, named->record, &why);
    } else {
        arbiter_fail_job(a, buf_str(&why));
    }
    buf_done(&why);
}

/* Counts the records that are left out, in the epoch in which their workers died and in every later
 * one. */
uint64_t leases_left_out(const struct leases *leases, uint32_t dataset)
{
    struct shard_progress data;
    uint64_t count = 0;
    if (!shard_progress(leases->shard, dataset, &data)) {
        return 0;
    }
    uint32_t begun = data.epoch + (data.epoch < data.dataset.epochs);
    for (uint32_t i = 0; i < leases->asides.count; i++) {
        const struct aside *aside = &leases->asides.list[i];
        count += aside->dataset == dataset ? begun - aside->epoch : 0;
    }
    return count;
}

/* ---- The journal ---- */

void leases_replay_aside(struct arbiter *a, const uint8_t *bytes, size_t count)
{
    bool in_table = count == ASIDE_BYTES; /* of a snapshot */
    if (!in_table && count != ASIDE_BYTES + NUMBER_BYTES) {
        arbiter_fail(a, muster_fail(a->err, MUSTER_EDATA,
                                    "a record of the journal sets no record of a lease aside"));
        return;
    }
    arbiter_fail(a, asides_read(&a->leases.asides, bytes, ASIDE_BYTES, a->err));
    if (a->failed || in_table) {
        return;
    }
    const struct aside *aside = &a->leases.asides.list[a->leases.asides.count - 1];
    struct shard_part part = {
        SHARD_ANY_OWNER, {aside->dataset, aside->epoch, entry_read_number(bytes + ASIDE_BYTES), 1}};
    if (!leases_tell(
            a, &(struct shard_event){.kind = SHARD_LEAVE_OUT, .parts = &part, .part_count = 1}) &&
        !a->failed) {
        arbiter_fail(a, muster_fail(a->err, MUSTER_EDATA,
                                    "a record of the journal sets a record aside that is done"));
    }
}
