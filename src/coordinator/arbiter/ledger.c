/* See ledger.h. */
#include "coordinator/arbiter/ledger.h"

#include "base/cleanup.h"
#include "base/err.h"

#include <assert.h>
#include <string.h>

int ledger_init(struct ledger *ledger, struct muster_err *err)
{
    *ledger = (struct ledger){.shard = shard_new(0)};
    buf_init(&ledger->tail, LEDGER_TAIL_MAX);
    return ledger->shard ? 0 : err_no_memory(err);
}

void ledger_done(struct ledger *ledger)
{
    shard_free(ledger->shard);
    free(ledger->base);
    buf_done(&ledger->tail);
}

int ledger_fail(int code, struct muster_err *err)
{
    return muster_fail(err, code, "the table of records cannot grow: %s", muster_code_text(code));
}

static int take_base(const struct shard_state *shard, struct ledger *ledger, struct muster_err *err)
{
    size_t bound = shard_snapshot_bound(shard);
    uint8_t *base = malloc(bound);
    if (!base) {
        return err_no_memory(err);
    }
    free(ledger->base);
    ledger->base = base;
    ledger->base_bytes = shard_snapshot(shard, base, bound);
    return 0;
}

/* What there is before the first step, to go back to. */
static int ensure_base(struct ledger *ledger, struct muster_err *err)
{
    return ledger->base ? 0 : take_base(ledger->shard, ledger, err);
}

int ledger_add(struct ledger *ledger, const struct shard_dataset *spec, bool *ret_new,
               struct muster_err *err)
{
    struct shard_progress progress;
    struct shard_effects effects;
    uint32_t count = 0;
    while (shard_progress(ledger->shard, count, &progress)) {
        count++;
    }
    const struct shard_event event = {.kind = SHARD_DATASET, .dataset_spec = spec};
    int r = shard_step(ledger->shard, &event, &effects);
    if (r < 0) {
        return ledger_fail(r, err);
    }
    if (effects.list[0].kind != SHARD_ADDED) {
        return muster_fail(err, MUSTER_EINVAL, "data set \"%.*s\": %s", SHARD_NAME_BYTES - 1,
                           spec->name, shard_reason_text(effects.list[0].reason));
    }
    *ret_new = effects.list[0].dataset == count;
    return 0;
}

static int commit_parts(struct shard_state *shard, const struct wire_step *step,
                        struct shard_effects *ret, struct muster_err *err)
{
    muster_auto(free) struct shard_part *parts = calloc(step->ranges.count + 1, sizeof *parts);
    if (!parts) {
        return err_no_memory(err);
    }
    for (uint32_t i = 0; i < step->ranges.count; i++) {
        parts[i] = (struct shard_part){SHARD_ANY_OWNER, step->ranges.list[i]};
    }
    const struct shard_event event = {
        .kind = SHARD_COMMIT, .parts = parts, .part_count = step->ranges.count};
    int r = shard_step(shard, &event, ret);
    if (r < 0) {
        return ledger_fail(r, err);
    }
    if (ret->count > 0 && ret->list[0].kind == SHARD_REFUSED) {
        struct shard_range range = ret->list[0].range;
        return muster_fail(err, MUSTER_EDATA,
                           "step %llu cannot count, for its records (%u from %llu of epoch %u of "
                           "data set %u): %s",
                           (unsigned long long)step->version, range.count,
                           (unsigned long long)range.first, range.epoch, range.dataset,
                           shard_reason_text(ret->list[0].reason));
    }
    return 0;
}

static int keep(struct ledger *ledger, const struct wire_step *step, struct muster_err *err)
{
    const struct wire_message message = {.kind = WIRE_COMMITS, .commits.steps = {step, 1}};
    int64_t count = wire_write(&message, NULL, 0, err);
    char *place = count < 0 ? NULL : buf_reserve(&ledger->tail, (size_t)count);
    if (count < 0) {
        return (int)count;
    }
    if (!place) {
        return muster_fail(err, MUSTER_ETOOBIG,
                           "the steps since the last checkpoint take more than %d MiB: save one",
                           LEDGER_TAIL_MAX >> 20);
    }
    buf_grew(&ledger->tail, (size_t)wire_write(&message, (uint8_t *)place, (size_t)count, err));
    return 0;
}

int ledger_commit(struct ledger *ledger, const struct wire_step *step, struct shard_effects *ret,
                  struct muster_err *err)
{
    if (step->version != ledger->version + 1) {
        return muster_fail(err, MUSTER_EDATA, "step %llu follows step %llu",
                           (unsigned long long)step->version, (unsigned long long)ledger->version);
    }
    int r = ensure_base(ledger, err);
    r = r < 0 ? r : commit_parts(ledger->shard, step, ret, err);
    r = r < 0 ? r : keep(ledger, step, err);
    if (r == 0) {
        ledger->version++;
    }
    return r;
}

/* The first step of the tail, which is one of ours. */
static int first_step(const struct ledger *ledger, size_t at, struct wire_message *ret,
                      void **ret_memory, struct muster_err *err)
{
    const uint8_t *bytes = (const uint8_t *)ledger->tail.data + at;
    int64_t count = wire_frame_bytes(bytes, ledger->tail.used - at, WIRE_FRAME_MAX, err);
    assert(count > 0);
    struct wire_room room = {.memory = malloc(WIRE_ROOM_BYTES(count)),
                             .size_bytes = WIRE_ROOM_BYTES(count)};
    int r = room.memory ? wire_read(bytes, (size_t)count, &room, ret, err) : err_no_memory(err);
    *ret_memory = room.memory;
    return r < 0 ? r : (int)count;
}

/* Data sets that came after the checkpoint stay. */
static int add_newer(const struct ledger *ledger, struct shard_state *shard)
{
    struct shard_progress progress, known;
    int r = 0;
    for (uint32_t i = 0; r == 0 && shard_progress(ledger->shard, i, &progress); i++) {
        struct shard_effects effects;
        const struct shard_event event = {.kind = SHARD_DATASET, .dataset_spec = &progress.dataset};
        if (!shard_progress(shard, i, &known)) {
            r = shard_step(shard, &event, &effects);
        }
    }
    return r;
}

static int restore_base(struct ledger *ledger, struct shard_state **ret, struct muster_err *err)
{
    int r = ensure_base(ledger, err);
    if (r < 0) {
        return r;
    }
    r = shard_restore(ledger->base, ledger->base_bytes, 0, ret);
    r = r < 0 ? r : add_newer(ledger, *ret);
    return r < 0 ? ledger_fail(r, err) : 0;
}

int ledger_set_checkpoint(struct ledger *ledger, uint64_t version, struct muster_err *err)
{
    struct shard_state *shard = NULL;
    size_t at = 0;
    assert(version >= ledger->checkpoint && version <= ledger->version);
    int r = restore_base(ledger, &shard, err);
    for (uint64_t v = ledger->checkpoint; r >= 0 && v < version; v++) {
        struct wire_message message;
        struct shard_effects effects;
        muster_auto(free) void *memory = NULL;
        r = first_step(ledger, at, &message, &memory, err);
        if (r > 0) {
            at += (size_t)r;
            r = commit_parts(shard, &message.commits.steps.list[0], &effects, err);
        }
    }
    r = r < 0 ? r : take_base(shard, ledger, err);
    shard_free(shard);
    if (r == 0) {
        buf_consume(&ledger->tail, at);
        ledger->checkpoint = version;
    }
    return r;
}

int ledger_cut(struct ledger *ledger, struct muster_err *err)
{
    struct shard_state *shard = NULL;
    int r = restore_base(ledger, &shard, err);
    if (r == 0) {
        shard_free(ledger->shard);
        ledger->shard = shard;
        ledger->version = ledger->checkpoint;
        buf_clear(&ledger->tail);
    }
    return r;
}

bool ledger_is_full(const struct ledger *ledger)
{
    struct shard_progress progress;
    bool any = false;
    for (uint32_t i = 0; shard_progress(ledger->shard, i, &progress); i++) {
        if (progress.dataset.task == SHARD_TRAIN || progress.dataset.micro_batches > 0) {
            any = true;
            if (progress.epoch < progress.dataset.epochs) {
                return false;
            }
        }
    }
    return any;
}
