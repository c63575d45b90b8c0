/* See ledger.h. */
#include "coordinator/arbiter/ledger.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "coordinator/arbiter/entry.h"

#include <assert.h>
#include <string.h>

int ledger_init(struct ledger *ledger, struct muster_err *err)
{
    *ledger = (struct ledger){.shard = shard_new(0)};
    buf_init(&ledger->tail, LEDGER_TAIL_ROOM);
    return ledger->shard ? 0 : err_no_memory(err);
}

void ledger_done(struct ledger *ledger)
{
    shard_free(ledger->shard);
    free(ledger->base);
    free(ledger->late);
    older_done(&ledger->older);
    buf_done(&ledger->tail);
}

int ledger_fail(int code, struct muster_err *err)
{
    return muster_fail(err, code, "the table of records cannot grow: %s", muster_code_text(code));
}

static int take_state(const struct shard_state *shard, uint8_t **state, size_t *ret_bytes,
                      struct muster_err *err)
{
    size_t bound = shard_snapshot_bound(shard);
    uint8_t *bytes = malloc(bound);
    if (!bytes) {
        return err_no_memory(err);
    }
    free(*state);
    *state = bytes;
    *ret_bytes = shard_snapshot(shard, bytes, bound);
    return 0;
}

/* Keeps the state before the first step, so that the job can go back to it. */
static int ensure_base(struct ledger *ledger, struct muster_err *err)
{
    return ledger->base ? 0 : take_state(ledger->shard, &ledger->base, &ledger->base_bytes, err);
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
        return err_no_memory(err);
    }
    buf_grew(&ledger->tail, (size_t)wire_write(&message, (uint8_t *)place, (size_t)count, err));
    return 0;
}

/* Reads the first step of the tail; the ledger has written it. */
static int first_step(const struct ledger *ledger, size_t at, struct wire_message *ret,
                      void **ret_memory, struct muster_err *err)
{
    const uint8_t *bytes = (const uint8_t *)ledger->tail.data + at;
    int64_t count = wire_frame_bytes(bytes, ledger->tail.used - at, WIRE_FRAME_MAX, err);
    if (count <= 0 || (size_t)count > ledger->tail.used - at) {
        return muster_fail(err, MUSTER_EDATA, "the ledger of the journal is torn");
    }
    struct wire_room room = {.memory = malloc(WIRE_ROOM_BYTES(count)),
                             .size_bytes = WIRE_ROOM_BYTES(count)};
    int r = room.memory ? wire_read(bytes, (size_t)count, &room, ret, err) : err_no_memory(err);
    *ret_memory = room.memory;
    if (r == 0 && (ret->kind != WIRE_COMMITS || ret->commits.steps.count != 1)) {
        r = muster_fail(err, MUSTER_EDATA, "the ledger of the journal is torn");
    }
    return r < 0 ? r : (int)count;
}

/* Adds the data sets that came after the checkpoint: they stay. */
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

static int restore(const struct ledger *ledger, const uint8_t *bytes, size_t count,
                   struct shard_state **ret, struct muster_err *err)
{
    int r = shard_restore(bytes, count, 0, ret);
    r = r < 0 ? r : add_newer(ledger, *ret);
    return r < 0 ? ledger_fail(r, err) : 0;
}

/* Commits the steps of the tail up to `version`, or up to `most` bytes of the tail, to the records
 * at its beginning. Returns how many bytes were taken. */
static int64_t redo(struct ledger *ledger, uint64_t version, size_t most, struct shard_state **ret,
                    uint64_t *ret_version, struct muster_err *err)
{
    const uint8_t *from = ledger->late ? ledger->late : ledger->base;
    size_t at = 0;
    int r = restore(ledger, from, ledger->late ? ledger->late_bytes : ledger->base_bytes, ret, err);
    uint64_t v = ledger->first;
    for (; r >= 0 && v < version && at < most; v++) {
        struct wire_message message;
        struct shard_effects effects;
        muster_auto(free) void *memory = NULL;
        r = first_step(ledger, at, &message, &memory, err);
        if (r > 0) {
            at += (size_t)r;
            r = commit_parts(*ret, &message.commits.steps.list[0], &effects, err);
        }
    }
    *ret_version = v;
    return r < 0 ? r : (int64_t)at;
}

/* Removes half of the tail. No checkpoint will have so old a version any more. */
static int fold(struct ledger *ledger, struct muster_err *err)
{
    struct shard_state *shard = NULL;
    uint64_t version;
    int64_t taken = redo(ledger, ledger->version, ledger->tail.used / 2, &shard, &version, err);
    int r = taken < 0 ? (int)taken : take_state(shard, &ledger->late, &ledger->late_bytes, err);
    shard_free(shard);
    if (r == 0) {
        buf_consume(&ledger->tail, (size_t)taken);
        ledger->first = version;
    }
    return r;
}

int ledger_commit(struct ledger *ledger, const struct wire_step *step, struct shard_effects *ret,
                  struct muster_err *err)
{
    if (step->version != ledger->version + 1) {
        return muster_fail(err, MUSTER_EDATA, "step %llu follows step %llu",
                           (unsigned long long)step->version, (unsigned long long)ledger->version);
    }
    if (ledger->max_steps > 0 && step->version > ledger->max_steps) {
        return muster_fail(err, MUSTER_EDATA, "step %llu cannot count: the job ends with step %llu",
                           (unsigned long long)step->version,
                           (unsigned long long)ledger->max_steps);
    }
    int r = ensure_base(ledger, err);
    r = r < 0 ? r : commit_parts(ledger->shard, step, ret, err);
    r = r < 0 ? r : keep(ledger, step, err);
    if (r == 0) {
        ledger->version++;
    }
    return r == 0 && ledger->tail.used > LEDGER_TAIL_MAX ? fold(ledger, err) : r;
}

static void forget_late(struct ledger *ledger)
{
    free(ledger->late);
    ledger->late = NULL;
    ledger->late_bytes = 0;
    ledger->first = ledger->checkpoint;
}

/* The newest checkpoint's state becomes one of the older ones. The model of the beginning has no
 * state. */
static void push_older(struct ledger *ledger)
{
    if (ledger->checkpoint == 0) {
        free(ledger->base);
    } else {
        older_push(&ledger->older,
                   (struct older_state){ledger->checkpoint, ledger->base, ledger->base_bytes});
    }
    ledger->base = NULL;
    ledger->base_bytes = 0;
}

static void pop_older(struct ledger *ledger)
{
    struct older_state state = older_pop(&ledger->older);
    free(ledger->base);
    ledger->base = state.bytes;
    ledger->base_bytes = state.count;
    ledger->checkpoint = state.version;
}

int ledger_set_checkpoint(struct ledger *ledger, uint64_t version, struct muster_err *err)
{
    struct shard_state *shard = NULL;
    assert(version >= ledger->first && version <= ledger->version);
    int64_t taken = ensure_base(ledger, err);
    taken = taken < 0 ? taken : redo(ledger, version, SIZE_MAX, &shard, &version, err);
    uint8_t *state = NULL;
    size_t bytes = 0;
    int r = taken < 0 ? (int)taken : take_state(shard, &state, &bytes, err);
    shard_free(shard);
    if (r == 0) {
        buf_consume(&ledger->tail, (size_t)taken);
        push_older(ledger);
        ledger->base = state;
        ledger->base_bytes = bytes;
        ledger->checkpoint = version;
        forget_late(ledger);
    }
    return r;
}

static int no_checkpoint(uint64_t version, struct muster_err *err)
{
    return muster_fail(err, MUSTER_EDATA, "no checkpoint has version %llu",
                       (unsigned long long)version);
}

int ledger_look_back(const struct ledger *ledger, uint64_t version, struct shard_state **ret,
                     struct muster_err *err)
{
    const struct older_state newest = {ledger->checkpoint, ledger->base, ledger->base_bytes};
    const struct older_state *found =
        newest.version == version ? &newest : older_find(&ledger->older, version);
    if (!found) {
        return no_checkpoint(version, err);
    }
    return found->bytes ? restore(ledger, found->bytes, found->count, ret, err) : 0;
}

int ledger_cut(struct ledger *ledger, uint64_t version, struct muster_err *err)
{
    struct shard_state *shard = NULL;
    while (ledger->checkpoint > version && ledger->older.count > 0) {
        pop_older(ledger);
    }
    if (ledger->checkpoint != version) {
        return no_checkpoint(version, err);
    }
    int r = ensure_base(ledger, err);
    r = r < 0 ? r : restore(ledger, ledger->base, ledger->base_bytes, &shard, err);
    if (r < 0) {
        shard_free(shard);
        return r;
    }
    shard_free(ledger->shard);
    ledger->shard = shard;
    ledger->version = ledger->checkpoint;
    buf_clear(&ledger->tail);
    forget_late(ledger);
    return 0;
}

bool ledger_is_full(const struct ledger *ledger)
{
    struct shard_progress progress;
    bool any = false;
    if (ledger->max_steps > 0 && ledger->version == ledger->max_steps) {
        return true;
    }
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

/* ---- As bytes ---- */

enum { NUMBERS = 6 };

void ledger_write(const struct ledger *ledger, struct buf *ret)
{
    const uint64_t numbers[NUMBERS] = {ledger->version,    ledger->checkpoint, ledger->first,
                                       ledger->base_bytes, ledger->late_bytes, ledger->tail.used};
    for (int i = 0; i < NUMBERS; i++) {
        entry_write_number(numbers[i], ret);
    }
    buf_add(ret, ledger->base, ledger->base_bytes);
    buf_add(ret, ledger->late, ledger->late_bytes);
    buf_add(ret, ledger->tail.data, ledger->tail.used);
}

int ledger_read(struct ledger *ledger, const uint8_t *bytes, size_t count, struct muster_err *err)
{
    uint64_t n[NUMBERS], reached;
    size_t head = NUMBERS * sizeof *n;
    for (size_t i = 0; i < NUMBERS && count >= head; i++) {
        n[i] = entry_read_number(bytes + i * sizeof *n);
    }
    if (count < head || n[3] > count || n[4] > count || n[5] > count ||
        n[3] + n[4] + n[5] != count - head || n[1] > n[2] || n[2] > n[0] ||
        n[5] > LEDGER_TAIL_ROOM || (n[3] == 0 && n[0] > 0)) {
        return muster_fail(err, MUSTER_EDATA, "a record of the journal is no ledger");
    }
    if (n[3] == 0) {
        return 0; /* no step was committed */
    }
    struct shard_state *shard = NULL;
    ledger->version = n[0];
    ledger->checkpoint = n[1];
    ledger->first = n[2];
    ledger->base_bytes = n[3];
    ledger->late_bytes = n[4];
    int r = older_copy(bytes + head, n[3], &ledger->base, err);
    r = r < 0 ? r : older_copy(bytes + head + n[3], n[4], &ledger->late, err);
    buf_add(&ledger->tail, bytes + head + n[3] + n[4], n[5]);
    int64_t taken = r < 0 ? r : redo(ledger, n[0], SIZE_MAX, &shard, &reached, err);
    if (taken < 0 || reached != n[0] || (size_t)taken != n[5]) {
        shard_free(shard);
        return taken < 0 ? (int)taken
                         : muster_fail(err, MUSTER_EDATA, "the ledger of the journal is torn");
    }
    shard_free(ledger->shard);
    ledger->shard = shard;
    return 0;
}
