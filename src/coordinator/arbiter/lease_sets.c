/* Data sets that are leased: the first worker that enrolls declares one; it may begin where a
 * checkpoint ended. See leasing.h. */
#include "coordinator/arbiter/leasing.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "coordinator/arbiter/internal.h"

#include <stdio.h>
#include <string.h>

enum { RANGES_MAX = WIRE_FRAME_MAX / 64 };

/* ---- Sums ---- */

uint32_t leases_count_sums(const char *names)
{
    uint32_t count = *names != 0;
    for (; *names; names++) {
        count += *names == ',';
    }
    return count;
}

void leases_add_sums(struct lease_sums *sums, const struct wire_sums *told)
{
    for (uint32_t i = 0; i < sums->count && i < told->count; i++) {
        double value;
        memcpy(&value, &told->list[i], sizeof value);
        sums->list[i] += value;
    }
}

/* ---- Declaring ---- */

static bool names_are(const char *names, const struct wire_text *text)
{
    return strlen(names) == text->count && memcmp(names, text->bytes, text->count) == 0;
}

static bool may_declare(const struct arbiter *a, const struct wire_enroll *told, uint32_t number,
                        char *ret_why)
{
    const struct wire_dataset *data = &told->dataset;
    char names[WIRE_SUM_NAMES_MAX + 1] = "";
    memcpy(names, told->sums.bytes, told->sums.count);
    const char *why = a->over                        ? "the job is done"
                      : number >= SHARD_DATASETS_MAX ? "the job has too many"
                      : data->task >= SHARD_TASKS || data->records > SHARD_SIZE_MAX ||
                              data->epochs == SHARD_ENDLESS
                          ? shard_reason_text(SHARD_BAD_REQUEST)
                      : leases_count_sums(names) > WIRE_SUMS_MAX ? "it has too many sums"
                                                                 : NULL;
    if (why) {
        (void)snprintf(ret_why, ARBITER_WHY_BYTES, "data set \"%.*s\": %s", (int)data->name.count,
                       data->name.bytes, why);
    }
    return !why;
}

static bool declare(struct arbiter *a, const struct shard_dataset *spec,
                    const struct wire_text *sums, uint32_t number)
{
    struct lease_sums *mine = &a->leases.sums[number];
    if (!leases_tell(a, &(struct shard_event){.kind = SHARD_DATASET, .dataset_spec = spec})) {
        if (!a->failed) {
            arbiter_refuse(a, a->event->incarnation, shard_reason_text(SHARD_BAD_REQUEST));
        }
        return false;
    }
    *mine = (struct lease_sums){0};
    memcpy(mine->names, sums->bytes, sums->count);
    mine->count = leases_count_sums(mine->names);
    size_t offset = a->out->bytes.used;
    buf_add(&a->out->bytes, mine->names, sizeof mine->names);
    entry_write_dataset(spec, &a->out->bytes);
    arbiter_append(a, ENTRY_LEASED, offset);
    return !a->failed;
}

bool leases_declare(struct arbiter *a, const struct wire_enroll *told, uint32_t *ret_number)
{
    struct shard_dataset job = {0}, spec;
    char why[ARBITER_WHY_BYTES];
    arbiter_datasets_read(&told->dataset, 0, &spec);
    bool known = arbiter_datasets_find(a->leases.shard, &told->dataset.name, ret_number, &job);
    bool good =
        known ? arbiter_datasets_agree(&spec, &job, why) : may_declare(a, told, *ret_number, why);
    if (good && known && !names_are(a->leases.sums[*ret_number].names, &told->sums)) {
        (void)snprintf(why, sizeof why,
                       "data set \"%s\" sums up \"%s\" in the job, and \"%.*s\" here", job.name,
                       a->leases.sums[*ret_number].names, (int)told->sums.count, told->sums.bytes);
        good = false;
    }
    if (!good) {
        arbiter_refuse(a, a->event->incarnation, why);
        return false;
    }
    return known || declare(a, &spec, &told->sums, *ret_number);
}

/* ---- Records to do ---- */

struct list {
    struct shard_range *ranges;
    uint32_t count;
};

static bool add_range(struct list *list, struct shard_range range)
{
    if (list->count == RANGES_MAX) {
        return false;
    }
    list->ranges[list->count++] = range;
    return true;
}

static bool list_to_do(const struct arbiter *a, uint32_t dataset, struct list *ret)
{
    struct shard_range range, *last = NULL;
    while (shard_to_do_next(a->leases.shard, dataset, last, &range)) {
        if (!add_range(ret, range)) {
            return false;
        }
        last = &ret->ranges[ret->count - 1];
    }
    return true;
}

static bool list_held(const struct arbiter *a, uint32_t dataset, struct list *ret)
{
    for (size_t i = 0; i < a->leases.owner_count; i++) {
        struct shard_range range, *last = NULL;
        uint64_t owner = a->leases.owners[i].incarnation;
        if (a->leases.owners[i].dataset != dataset) {
            continue;
        }
        while (shard_held_next(a->leases.shard, owner, last, &range)) {
            if (!add_range(ret, range)) {
                return false;
            }
            last = &ret->ranges[ret->count - 1];
        }
    }
    return true;
}

static void answer_to_do(struct arbiter *a, const struct lease_owner *owner, bool begun)
{
    struct shard_progress data;
    struct list to_do = {0}, held = {0};
    muster_auto(free) struct shard_range *room = calloc(2 * (size_t)RANGES_MAX, sizeof *room);
    if (!room) {
        arbiter_fail(a, err_no_memory(a->err));
        return;
    }
    to_do.ranges = room;
    held.ranges = room + RANGES_MAX;
    (void)shard_progress(a->leases.shard, owner->dataset, &data);
    if (!list_to_do(a, owner->dataset, &to_do) || !list_held(a, owner->dataset, &held)) {
        arbiter_refuse(a, owner->incarnation, "what is to do is in too many pieces to be told");
        return;
    }
    struct wire_message message = {.kind = WIRE_TO_DO,
                                   .to_do = {.begin = begun,
                                             .epoch = data.epoch,
                                             .ranges = {to_do.ranges, to_do.count},
                                             .held = {held.ranges, held.count}}};
    arbiter_send(a, owner->incarnation, &message);
}

/* ---- Beginning at another position ---- */

static bool is_fresh(const struct arbiter *a, uint32_t dataset)
{
    struct shard_progress data;
    (void)shard_progress(a->leases.shard, dataset, &data);
    return data.epoch == 0 && data.epoch_done == 0 && data.to_do == data.dataset.size;
}

/* Commits [first, end), split into ranges of at most UINT32_MAX records. */
static bool commit_positions(struct arbiter *a, uint32_t dataset, uint32_t epoch, uint64_t first,
                             uint64_t end)
{
    bool good = true;
    while (good && first < end) {
        uint64_t left = end - first;
        struct shard_range range = {dataset, epoch, first,
                                    left < UINT32_MAX ? (uint32_t)left : UINT32_MAX};
        good = leases_commit(a, SHARD_ANY_OWNER, &(struct wire_ranges){&range, 1});
        first += range.count;
    }
    return good;
}

/* Whether the ranges are sorted, do not overlap, and are in told->epoch of this data set. */
static bool are_positions(const struct wire_to_do *told, uint32_t dataset,
                          const struct shard_dataset *spec)
{
    uint64_t end = 0;
    for (uint32_t i = 0; i < told->ranges.count; i++) {
        struct shard_range range = told->ranges.list[i];
        if (range.dataset != dataset || range.epoch != told->epoch || range.first < end ||
            shard_range_end(range) > spec->size) {
            return false;
        }
        end = shard_range_end(range);
    }
    return told->epoch < spec->epochs;
}

/* Replaces the table by a restored copy. Until the copy is served, records that no worker holds can
 * be marked done. */
static bool replace_by_unserved(struct arbiter *a)
{
    struct shard_state *fresh = NULL;
    size_t bound = shard_snapshot_bound(a->leases.shard);
    muster_auto(free) uint8_t *bytes = malloc(bound);
    int r = bytes ? shard_restore(bytes, shard_snapshot(a->leases.shard, bytes, bound), 0, &fresh)
                  : MUSTER_ENOMEM;
    if (r < 0) {
        arbiter_fail(a, ledger_fail(r, a->err));
        return false;
    }
    shard_free(a->leases.shard);
    a->leases.shard = fresh;
    return true;
}

bool leases_begin_at(struct arbiter *a, uint32_t dataset, const struct wire_to_do *told)
{
    struct shard_progress data;
    uint64_t at = 0;
    bool good = shard_progress(a->leases.shard, dataset, &data) &&
                are_positions(told, dataset, &data.dataset) && is_fresh(a, dataset);
    for (uint32_t epoch = 0; good && epoch < told->epoch; epoch++) {
        good = commit_positions(a, dataset, epoch, 0, data.dataset.size);
    }
    for (uint32_t i = 0; good && i < told->ranges.count; i++) {
        good = commit_positions(a, dataset, told->epoch, at, told->ranges.list[i].first);
        at = shard_range_end(told->ranges.list[i]);
    }
    return good && commit_positions(a, dataset, told->epoch, at, data.dataset.size);
}

/* Whether no worker holds records of any data set, so that the table can be replaced. */
static bool nothing_is_held(const struct arbiter *a)
{
    for (size_t i = 0; i < a->leases.owner_count; i++) {
        if (shard_held(a->leases.shard, a->leases.owners[i].incarnation) > 0) {
            return false;
        }
    }
    return true;
}

static bool begin_in_the_middle(struct arbiter *a, uint32_t dataset, const struct wire_to_do *told)
{
    struct shard_progress data;
    (void)shard_progress(a->leases.shard, dataset, &data);
    if (!are_positions(told, dataset, &data.dataset) || !is_fresh(a, dataset) ||
        !nothing_is_held(a) || !replace_by_unserved(a)) {
        return false;
    }
    bool good = leases_begin_at(a, dataset, told);
    if (good) {
        leases_append_begin(a, dataset, told);
        a->leases.serving = false; /* leases_settle serves it again */
        leases_start(a);
    }
    return good;
}

void leases_hear_to_do(struct arbiter *a, const struct lease_owner *owner,
                       const struct wire_to_do *told)
{
    uint64_t incarnation = owner->incarnation;
    bool begun = told->begin && begin_in_the_middle(a, owner->dataset, told);
    const struct lease_owner *still = leases_owner(&a->leases, incarnation);
    if (still && !a->failed) {
        answer_to_do(a, still, begun);
    }
}
