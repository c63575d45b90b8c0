/* See entry.h. */
#include "coordinator/arbiter/entry.h"

#include <string.h>

enum { NUMBER_BYTES = 8, DATASET_NUMBERS = 9, GROWING_NUMBERS };

void entry_write_number(uint64_t number, struct buf *ret)
{
    uint8_t bytes[NUMBER_BYTES];
    for (int i = 0; i < NUMBER_BYTES; i++) {
        bytes[i] = (uint8_t)(number >> 8 * i);
    }
    buf_add(ret, bytes, sizeof bytes);
}

uint64_t entry_read_number(const uint8_t *bytes)
{
    uint64_t number = 0;
    for (int i = 0; i < NUMBER_BYTES; i++) {
        number |= (uint64_t)bytes[i] << 8 * i;
    }
    return number;
}

static int damaged(struct muster_err *err, const char *what)
{
    return muster_fail(err, MUSTER_EDATA, "a record of the journal is no %s", what);
}

/* ---- Writing ---- */

void entry_write_term(uint64_t term, struct buf *ret)
{
    entry_write_number(term, ret);
}

void entry_write_dataset(const struct shard_dataset *spec, struct buf *ret)
{
    buf_add(ret, spec->name, sizeof spec->name);
    entry_write_number(spec->task, ret);
    entry_write_number(spec->size, ret);
    entry_write_number(spec->epochs, ret);
    entry_write_number(spec->seed, ret);
    entry_write_number(spec->block, ret);
    entry_write_number(spec->batch, ret);
    entry_write_number(spec->overlap, ret);
    entry_write_number(spec->set_aside, ret);
    entry_write_number(spec->micro_batches, ret);
    if (spec->per_worker) {
        entry_write_number(spec->per_worker, ret);
    }
}

int entry_write_message(const struct wire_message *message, struct buf *ret, struct muster_err *err)
{
    int64_t count = wire_write(message, NULL, 0, err);
    char *place = count < 0 ? NULL : buf_reserve(ret, (size_t)count);
    if (!place) {
        return count < 0 ? (int)count
                         : muster_fail(err, MUSTER_ENOMEM, "no memory for a message of %lld bytes",
                                       (long long)count);
    }
    count = wire_write(message, (uint8_t *)place, (size_t)count, err);
    buf_grew(ret, (size_t)count);
    return 0;
}

void entry_write_age(uint64_t age, struct buf *ret)
{
    entry_write_number(age, ret);
}

void entry_write_section(enum entry_kind kind, const void *bytes, size_t count, struct buf *ret)
{
    entry_write_number(kind, ret);
    entry_write_number(count, ret);
    buf_add(ret, bytes, count);
}

/* ---- Reading ---- */

bool entry_read_section(const uint8_t *bytes, size_t count, size_t *at, uint32_t *ret_kind,
                        const uint8_t **ret_bytes, size_t *ret_count, bool *ret_wrong)
{
    size_t left = count - *at;
    *ret_wrong = false;
    if (left == 0) {
        return false;
    }
    uint64_t kind = left < ENTRY_SECTION_BYTES ? 0 : entry_read_number(bytes + *at);
    uint64_t size = left < ENTRY_SECTION_BYTES ? 0 : entry_read_number(bytes + *at + NUMBER_BYTES);
    if (left < ENTRY_SECTION_BYTES || kind >= ENTRY_KINDS || size > left - ENTRY_SECTION_BYTES) {
        *ret_wrong = true;
        return false;
    }
    *ret_kind = (uint32_t)kind;
    *ret_bytes = bytes + *at + ENTRY_SECTION_BYTES;
    *ret_count = size;
    *at += ENTRY_SECTION_BYTES + size;
    return true;
}

int entry_read_term(const uint8_t *bytes, size_t count, uint64_t *ret, struct muster_err *err)
{
    if (count != NUMBER_BYTES) {
        return damaged(err, "term");
    }
    *ret = entry_read_number(bytes);
    return 0;
}

int entry_read_dataset(const uint8_t *bytes, size_t count, struct shard_dataset *ret,
                       struct muster_err *err)
{
    uint64_t numbers[GROWING_NUMBERS];
    bool grows = count == SHARD_NAME_BYTES + sizeof numbers;
    bool is_one = grows || count == SHARD_NAME_BYTES + DATASET_NUMBERS * sizeof numbers[0];
    if (!is_one || !memchr(bytes, 0, SHARD_NAME_BYTES)) {
        return damaged(err, "data set");
    }
    numbers[DATASET_NUMBERS] = 1;
    for (int i = 0; i < DATASET_NUMBERS + grows; i++) {
        numbers[i] = entry_read_number(bytes + SHARD_NAME_BYTES + i * NUMBER_BYTES);
    }
    if (numbers[0] >= SHARD_TASKS || numbers[2] > UINT32_MAX || numbers[4] > UINT32_MAX ||
        numbers[5] > UINT32_MAX || numbers[6] > 1 || numbers[7] > 1 || numbers[8] > UINT32_MAX ||
        numbers[DATASET_NUMBERS] != 1) {
        return damaged(err, "data set");
    }
    *ret = (struct shard_dataset){.task = (enum shard_task)numbers[0],
                                  .size = numbers[1],
                                  .epochs = (uint32_t)numbers[2],
                                  .seed = numbers[3],
                                  .block = (uint32_t)numbers[4],
                                  .batch = (uint32_t)numbers[5],
                                  .overlap = numbers[6],
                                  .set_aside = numbers[7],
                                  .micro_batches = (uint32_t)numbers[8],
                                  .per_worker = grows};
    memcpy(ret->name, bytes, SHARD_NAME_BYTES);
    return 0;
}

int entry_read_message(const uint8_t *bytes, size_t count, enum wire_kind kind,
                       struct wire_room *room, struct wire_message *ret, struct muster_err *err)
{
    int r = wire_read(bytes, count, room, ret, err);
    return r == 0 && ret->kind == kind ? 0 : damaged(err, wire_kind_name(kind));
}

int entry_read_generation(const uint8_t *bytes, size_t count, struct wire_room *room,
                          struct entry_generation *ret, struct muster_err *err)
{
    int64_t open = wire_frame_bytes(bytes, count, WIRE_FRAME_MAX, err);
    if (open <= 0 || (size_t)open > count) {
        return damaged(err, "generation");
    }
    int r = entry_read_message(bytes, (size_t)open, WIRE_OPEN, room, &ret->open, err);
    if (r < 0) {
        return r;
    }
    size_t rest = count - (size_t)open;
    size_t ages = (size_t)ret->open.open.members.count * NUMBER_BYTES;
    if (rest < ages) {
        return damaged(err, "generation");
    }
    ret->ages = bytes + open;
    ret->commits = rest > ages;
    if (ret->commits) {
        r = entry_read_message(ret->ages + ages, rest - ages, WIRE_COMMITS, room, &ret->step, err);
    }
    return r;
}

uint64_t entry_age(const struct entry_generation *generation, uint32_t member)
{
    return entry_read_number(generation->ages + (size_t)member * NUMBER_BYTES);
}
