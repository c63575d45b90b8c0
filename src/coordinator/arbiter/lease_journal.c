/* The records of leases in the journal. See leasing.h. */
#include "coordinator/arbiter/leasing.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "coordinator/arbiter/internal.h"

#include <string.h>

enum { NUMBER_BYTES = 8, OWNER_NUMBERS = 3, KEPT_NUMBERS = 3 };

static void damaged(struct arbiter *a, const char *what)
{
    arbiter_fail(a, muster_fail(a->err, MUSTER_EDATA, "a record of the journal is no %s", what));
}

/* ---- Appending ---- */

void leases_append_owner(struct arbiter *a, const struct lease_owner *owner, bool joined)
{
    size_t offset = a->out->bytes.used;
    entry_write_number(owner->incarnation, &a->out->bytes);
    entry_write_number(owner->dataset, &a->out->bytes);
    entry_write_number(joined, &a->out->bytes);
    arbiter_append(a, ENTRY_OWNER, offset);
}

static void append_message(struct arbiter *a, enum entry_kind kind, uint64_t number,
                           const struct wire_message *message)
{
    size_t offset = a->out->bytes.used;
    entry_write_number(number, &a->out->bytes);
    if (!a->failed) {
        arbiter_fail(a, entry_write_message(message, &a->out->bytes, a->err));
    }
    arbiter_append(a, kind, offset);
}

void leases_append_done(struct arbiter *a, uint64_t incarnation, const struct wire_done *done)
{
    append_message(a, ENTRY_DONE, incarnation,
                   &(struct wire_message){.kind = WIRE_DONE, .done = *done});
}

void leases_append_begin(struct arbiter *a, uint32_t dataset, const struct wire_to_do *told)
{
    append_message(a, ENTRY_BEGIN, dataset,
                   &(struct wire_message){.kind = WIRE_TO_DO, .to_do = *told});
}

/* ---- Replaying ---- */

static void add_dataset(struct arbiter *a, const uint8_t *bytes, size_t count)
{
    struct shard_dataset spec;
    struct shard_progress known;
    uint32_t number = 0;
    while (shard_progress(a->leases.shard, number, &known)) {
        number++;
    }
    struct lease_sums *sums = &a->leases.sums[number < SHARD_DATASETS_MAX ? number : 0];
    size_t names = sizeof sums->names;
    if (number == SHARD_DATASETS_MAX || count < names || bytes[names - 1] != 0) {
        damaged(a, "data set");
        return;
    }
    arbiter_fail(a, entry_read_dataset(bytes + names, count - names, &spec, a->err));
    if (!a->failed &&
        !leases_tell(a, &(struct shard_event){.kind = SHARD_DATASET, .dataset_spec = &spec})) {
        damaged(a, "data set");
        return;
    }
    memcpy(sums->names, bytes, names);
    sums->count = leases_count_sums(sums->names);
    if (sums->count > WIRE_SUMS_MAX) {
        damaged(a, "data set");
    }
}

void leases_replay_dataset(struct arbiter *a, const struct arbiter_event *event)
{
    add_dataset(a, event->bytes, event->count);
}

void leases_replay_owner(struct arbiter *a, const struct arbiter_event *event)
{
    struct shard_progress data;
    if (event->count != (size_t)OWNER_NUMBERS * NUMBER_BYTES) {
        damaged(a, "owner");
        return;
    }
    uint64_t incarnation = entry_read_number(event->bytes);
    uint64_t dataset = entry_read_number(event->bytes + NUMBER_BYTES);
    bool joined = entry_read_number(event->bytes + 2 * (size_t)NUMBER_BYTES);
    struct lease_owner *owner = leases_owner(&a->leases, incarnation);
    bool fits = dataset < SHARD_DATASETS_MAX &&
                shard_progress(a->leases.shard, (uint32_t)dataset, &data) && joined == !owner;
    if (!fits) {
        damaged(a, "owner");
    } else if (!joined) {
        leases_remove_owner(&a->leases, owner);
    } else if ((owner = leases_add_owner(&a->leases, incarnation)) != NULL) {
        owner->dataset = (uint32_t)dataset;
    } else {
        arbiter_fail(a, err_no_memory(a->err));
    }
}

/* Reads a number and a frame. */
static bool read_message(struct arbiter *a, const struct arbiter_event *event, enum wire_kind kind,
                         uint64_t *ret_number, void **ret_memory, struct wire_message *ret)
{
    if (event->count < NUMBER_BYTES) {
        damaged(a, wire_kind_name(kind));
        return false;
    }
    size_t count = event->count - NUMBER_BYTES;
    struct wire_room room = {.memory = malloc(WIRE_ROOM_BYTES(count) + 1),
                             .size_bytes = WIRE_ROOM_BYTES(count)};
    *ret_memory = room.memory;
    *ret_number = entry_read_number(event->bytes);
    arbiter_fail(a, room.memory ? entry_read_message(event->bytes + NUMBER_BYTES, count, kind,
                                                     &room, ret, a->err)
                                : err_no_memory(a->err));
    return !a->failed;
}

void leases_replay_done(struct arbiter *a, const struct arbiter_event *event)
{
    struct wire_message message;
    uint64_t incarnation;
    muster_auto(free) void *memory = NULL;
    if (!read_message(a, event, WIRE_DONE, &incarnation, &memory, &message)) {
        return;
    }
    struct lease_owner *owner = leases_owner(&a->leases, incarnation);
    bool fits = owner && message.done.sequence == owner->sequence + 1 &&
                message.done.sums.count == a->leases.sums[owner->dataset].count;
    if (!fits || !leases_commit(a, SHARD_ANY_OWNER, &message.done.done)) {
        damaged(a, "lease that was done");
        return;
    }
    owner->sequence++;
    leases_add_sums(&a->leases.sums[owner->dataset], &message.done.sums);
}

void leases_replay_begin(struct arbiter *a, const struct arbiter_event *event)
{
    struct wire_message message;
    uint64_t dataset;
    muster_auto(free) void *memory = NULL;
    if (read_message(a, event, WIRE_TO_DO, &dataset, &memory, &message) &&
        (dataset >= SHARD_DATASETS_MAX || !leases_begin_at(a, (uint32_t)dataset, &message.to_do))) {
        damaged(a, "beginning of a data set");
    }
}

/* ---- A snapshot ---- */

static void write_sums(const struct lease_sums *sums, struct buf *ret)
{
    buf_add(ret, sums->names, sizeof sums->names);
    buf_add(ret, sums->list, sizeof sums->list);
}

void leases_write(const struct leases *leases, struct buf *ret)
{
    entry_write_number(leases->owner_count, ret);
    for (size_t i = 0; i < leases->owner_count; i++) {
        entry_write_number(leases->owners[i].incarnation, ret);
        entry_write_number(leases->owners[i].dataset, ret);
        entry_write_number(leases->owners[i].sequence, ret);
    }
    for (int i = 0; i < SHARD_DATASETS_MAX; i++) {
        write_sums(&leases->sums[i], ret);
    }
    size_t bound = shard_snapshot_bound(leases->shard);
    char *place = buf_reserve(ret, bound);
    if (place) {
        buf_grew(ret, shard_snapshot(leases->shard, place, bound));
    }
}

struct cursor {
    const uint8_t *at;
    size_t left;
};

/* Returns NULL if fewer bytes are left. */
static const uint8_t *take(struct cursor *cursor, size_t count)
{
    const uint8_t *bytes = cursor->at;
    if (cursor->left < count) {
        return NULL;
    }
    cursor->at += count;
    cursor->left -= count;
    return bytes;
}

static bool read_owners(struct arbiter *a, struct cursor *cursor)
{
    const uint8_t *bytes = take(cursor, NUMBER_BYTES);
    uint64_t count = bytes ? entry_read_number(bytes) : LEASES_OWNERS_MAX + 1;
    bool good = count <= LEASES_OWNERS_MAX;
    for (uint64_t i = 0; good && i < count; i++) {
        bytes = take(cursor, (size_t)KEPT_NUMBERS * NUMBER_BYTES);
        uint64_t incarnation = bytes ? entry_read_number(bytes) : 0;
        good = bytes && !leases_owner(&a->leases, incarnation) &&
               entry_read_number(bytes + NUMBER_BYTES) < SHARD_DATASETS_MAX;
        struct lease_owner *owner = good ? leases_add_owner(&a->leases, incarnation) : NULL;
        good = owner != NULL;
        if (good) {
            owner->dataset = (uint32_t)entry_read_number(bytes + NUMBER_BYTES);
            owner->sequence = entry_read_number(bytes + 2 * (size_t)NUMBER_BYTES);
        }
    }
    return good;
}

static bool read_sums(struct arbiter *a, struct cursor *cursor)
{
    for (int i = 0; i < SHARD_DATASETS_MAX; i++) {
        struct lease_sums *sums = &a->leases.sums[i];
        const uint8_t *names = take(cursor, sizeof sums->names);
        const uint8_t *list = take(cursor, sizeof sums->list);
        if (!names || !list || names[sizeof sums->names - 1] != 0) {
            return false;
        }
        memcpy(sums->names, names, sizeof sums->names);
        memcpy(sums->list, list, sizeof sums->list);
        sums->count = leases_count_sums(sums->names);
        if (sums->count > WIRE_SUMS_MAX) {
            return false;
        }
    }
    return true;
}

static bool owners_fit(const struct leases *leases)
{
    struct shard_progress data;
    for (size_t i = 0; i < leases->owner_count; i++) {
        if (!shard_progress(leases->shard, leases->owners[i].dataset, &data)) {
            return false;
        }
    }
    return true;
}

void leases_read(struct arbiter *a, const uint8_t *bytes, size_t count)
{
    struct cursor cursor = {bytes, count};
    struct shard_state *shard = NULL;
    if (!leases_are_unused(&a->leases) || a->leases.owner_count > 0 || !read_owners(a, &cursor) ||
        !read_sums(a, &cursor) || shard_restore(cursor.at, cursor.left, 0, &shard) < 0) {
        damaged(a, "table of leases");
        return;
    }
    shard_free(a->leases.shard);
    a->leases.shard = shard;
    if (!owners_fit(&a->leases)) {
        damaged(a, "table of leases");
    }
}
