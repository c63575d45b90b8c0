/* A job's records as bytes: data sets, open epochs, what is not done, suspects. Numbers of 7 bits a
 * byte, least first (LEB128); ranges by their distance from the one before them. Owners are not
 * kept: what they hold is to do again after restoring. */
#include "shard/internal.h"

#include <muster/err.h>

#include <assert.h>
#include <string.h>

enum {
    VERSION = 3, /* 1: without planned data sets; 2: without data sets whose steps follow the
                    workers, and still written if there are none of them */
    NUMBER_BYTES = 10,
    RANGE_BYTES = 4 * NUMBER_BYTES,
    DATASET_BYTES = SHARD_NAME_BYTES + 20 * NUMBER_BYTES,
};

/* ---- Writing ---- */

struct writer {
    uint8_t *at;
    const uint8_t *end;
    uint64_t version;
};

static void put(struct writer *writer, uint64_t number)
{
    do {
        assert(writer->at < writer->end);
        *writer->at++ = (uint8_t)((number & 0x7f) | (number > 0x7f ? 0x80 : 0));
        number >>= 7;
    } while (number);
}

static size_t undone_ranges(const struct shard_state *state)
{
    size_t ranges = 0;
    for (uint32_t i = 0; i < state->data_count; i++) {
        ranges += state->data[i].to_do.ranges;
    }
    for (size_t i = 0; i < state->owner_count; i++) {
        ranges += state->owners[i]->held.ranges;
    }
    return ranges;
}

size_t shard_snapshot_bound(const struct shard_state *state)
{
    return 16 * NUMBER_BYTES + state->data_count * DATASET_BYTES +
           (undone_ranges(state) + 2 * (size_t)state->suspect_count + state->aside_count) *
               RANGE_BYTES;
}

static void put_dataset(struct writer *writer, const struct shard_data *data)
{
    const struct shard_dataset *spec = &data->spec;
    size_t length = strlen(spec->name);
    put(writer, length);
    for (size_t i = 0; i < length; i++) {
        put(writer, (uint8_t)spec->name[i]);
    }
    const uint64_t numbers[] = {
        spec->task,       spec->size,       spec->epochs,       spec->seed,      spec->block,
        spec->batch,      spec->overlap,    spec->set_aside,    data->told_size, data->told_epochs,
        data->next_epoch, data->open_count, spec->micro_batches};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        put(writer, numbers[i]);
    }
    if (writer->version > 2) {
        put(writer, spec->per_worker);
    }
    for (size_t i = 0; i < data->open_count; i++) {
        put(writer, data->open[i].epoch);
        put(writer, data->open[i].size);
        put(writer, data->open[i].done);
    }
}

/* The distance is signed, with the sign in the lowest bit: ranges of the next set may be before
 * this one. */
static void put_range(struct writer *writer, struct shard_range range, uint64_t *last)
{
    int64_t step = (int64_t)(range.first - *last);
    put(writer, range.dataset);
    put(writer, range.epoch);
    put(writer, (uint64_t)step << 1 ^ (uint64_t)(step >> 63));
    put(writer, range.count);
    *last = shard_range_end(range);
}

static void put_set(struct writer *writer, const struct shard_set *set, uint64_t *last)
{
    struct shard_range range;
    for (bool more = shard_set_first(set, &range); more;
         more = shard_set_next(set, range, &range)) {
        put_range(writer, range, last);
    }
}

static uint64_t least_version(const struct shard_state *state)
{
    uint64_t version = VERSION - 1;
    for (uint32_t i = 0; i < state->data_count; i++) {
        version = state->data[i].spec.per_worker ? VERSION : version;
    }
    return version;
}

size_t shard_snapshot(const struct shard_state *state, void *ret, size_t size_bytes)
{
    struct writer writer = {ret, (uint8_t *)ret + size_bytes, least_version(state)};
    uint64_t last = 0;
    put(&writer, writer.version);
    put(&writer, state->failed);
    put(&writer, state->data_count);
    for (uint32_t i = 0; i < state->data_count; i++) {
        put_dataset(&writer, &state->data[i]);
    }
    put(&writer, undone_ranges(state));
    for (uint32_t i = 0; i < state->data_count; i++) {
        put_set(&writer, &state->data[i].to_do, &last);
    }
    for (size_t i = 0; i < state->owner_count; i++) {
        put_set(&writer, &state->owners[i]->held, &last);
    }
    put(&writer, state->suspect_count);
    for (size_t i = 0; i < state->suspect_count; i++) {
        put_range(&writer, state->suspects[i].range, &last);
        put(&writer, state->suspects[i].tries);
    }
    put(&writer, state->aside_count);
    for (size_t i = 0; i < state->aside_count; i++) {
        put(&writer, state->aside[i].dataset);
        put(&writer, state->aside[i].record);
    }
    return (size_t)(writer.at - (uint8_t *)ret);
}

/* ---- Reading ---- */

struct reader {
    const uint8_t *at;
    const uint8_t *end;
    uint64_t version;
    bool bad; /* set once; all later numbers read as 0 */
};

/* Reads a number of at most `max`; a larger one makes the reader bad. */
static uint64_t take(struct reader *reader, uint64_t max)
{
    uint64_t number = 0;
    for (unsigned shift = 0; !reader->bad; shift += 7) {
        if (reader->at == reader->end || shift > 63 || (shift == 63 && *reader->at > 1)) {
            break;
        }
        uint8_t byte = *reader->at++;
        number |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80 && number <= max) {
            return number;
        }
        if (byte < 0x80) {
            break;
        }
    }
    reader->bad = true;
    return 0;
}

static void take_spec(struct reader *reader, struct shard_dataset *ret)
{
    uint64_t length = take(reader, SHARD_NAME_BYTES - 1);
    for (uint64_t i = 0; i < length; i++) {
        ret->name[i] = (char)take(reader, UINT8_MAX);
    }
    ret->task = (enum shard_task)take(reader, SHARD_TASKS - 1);
    ret->size = take(reader, SHARD_SIZE_MAX);
    ret->epochs = (uint32_t)take(reader, UINT32_MAX);
    ret->seed = take(reader, UINT64_MAX);
    ret->block = (uint32_t)take(reader, UINT32_MAX);
    ret->batch = (uint32_t)take(reader, UINT32_MAX);
    ret->overlap = take(reader, 1);
    ret->set_aside = take(reader, 1);
}

static void take_epochs(struct reader *reader, struct shard_data *data)
{
    data->told_size = take(reader, SHARD_SIZE_MAX);
    data->told_epochs = (uint32_t)take(reader, UINT32_MAX);
    data->next_epoch = (uint32_t)take(reader, data->spec.epochs);
    data->open_count = take(reader, SHARD_OPEN_MAX);
    data->spec.micro_batches = reader->version > 1 ? (uint32_t)take(reader, UINT32_MAX) : 0;
    data->spec.per_worker = reader->version > 2 && take(reader, 1) == 1;
    if (!shard_data_is_valid(&data->spec)) {
        reader->bad = true;
    }
    for (size_t i = 0; i < data->open_count; i++) {
        struct shard_epoch *epoch = &data->open[i];
        epoch->epoch = (uint32_t)take(reader, UINT32_MAX);
        epoch->size = take(reader, SHARD_SIZE_MAX);
        epoch->done = take(reader, epoch->size);
        if (epoch->epoch != data->next_epoch - data->open_count + i) {
            reader->bad = true;
        }
    }
}

static int take_dataset(struct reader *reader, struct shard_state *state)
{
    struct shard_effects effects = {0};
    struct shard_dataset spec = {0};
    uint32_t number = state->data_count;
    take_spec(reader, &spec);
    if (reader->bad) {
        return MUSTER_EDATA;
    }
    state->effects = &effects;
    int r = shard_data_add(state, &spec);
    state->effects = NULL;
    if (r < 0) {
        return r;
    }
    if (effects.list[0].kind != SHARD_ADDED || state->data_count != number + 1) {
        return MUSTER_EDATA;
    }
    take_epochs(reader, &state->data[number]);
    return reader->bad ? MUSTER_EDATA : 0;
}

/* Reads a range, which must be inside an open epoch. */
static struct shard_range take_range(struct reader *reader, const struct shard_state *state,
                                     uint64_t *last)
{
    struct shard_range range;
    range.dataset = (uint32_t)take(reader, SHARD_DATASETS_MAX - 1);
    range.epoch = (uint32_t)take(reader, UINT32_MAX);
    uint64_t step = take(reader, UINT64_MAX);
    range.first = *last + (step >> 1 ^ (uint64_t) - (int64_t)(step & 1));
    range.count = (uint32_t)take(reader, UINT32_MAX);
    if (!shard_range_valid(range) ||
        shard_range_end(range) > shard_epoch_size(state, range.dataset, range.epoch)) {
        reader->bad = true;
    }
    *last = reader->bad ? 0 : shard_range_end(range);
    return range;
}

static int take_undone(struct reader *reader, struct shard_state *state, uint64_t *last)
{
    int r = 0;
    uint64_t count = take(reader, UINT32_MAX);
    for (uint64_t i = 0; i < count && r == 0; i++) {
        struct shard_range range = take_range(reader, state, last);
        r = reader->bad ? MUSTER_EDATA : shard_set_add(&state->data[range.dataset].to_do, range);
    }
    return r == MUSTER_EEXIST ? MUSTER_EDATA : r;
}

/* A suspect that was held is in `to_do`, too, and is removed from it. */
static int take_suspects(struct reader *reader, struct shard_state *state, uint64_t *last)
{
    uint64_t count = take(reader, SHARD_SUSPECTS_MAX);
    for (uint64_t i = 0; i < count; i++) {
        struct shard_suspect suspect = {.range = take_range(reader, state, last)};
        suspect.tries = (uint32_t)take(reader, UINT32_MAX);
        if (reader->bad || shard_suspect_in(state, suspect.range)) {
            return MUSTER_EDATA;
        }
        struct shard_set *to_do = &state->data[suspect.range.dataset].to_do;
        int r = shard_set_remove(to_do, suspect.range);
        if (r == MUSTER_ENOENT) {
            r = shard_set_overlaps(to_do, suspect.range) ? MUSTER_EDATA : 0;
        }
        if (r < 0) {
            return r;
        }
        shard_suspect_add(state, suspect);
    }
    return 0;
}

static void take_aside(struct reader *reader, struct shard_state *state)
{
    state->aside_count = take(reader, SHARD_ASIDE_MAX);
    for (size_t i = 0; i < state->aside_count; i++) {
        state->aside[i].dataset = (uint32_t)take(reader, SHARD_DATASETS_MAX - 1);
        state->aside[i].record = take(reader, SHARD_SIZE_MAX);
    }
}

static int take_all(struct reader *reader, struct shard_state *state)
{
    uint64_t last = 0;
    reader->version = take(reader, VERSION);
    int r = reader->version > 0 ? 0 : MUSTER_EDATA;
    state->failed = take(reader, 1);
    uint64_t count = take(reader, SHARD_DATASETS_MAX);
    for (uint64_t i = 0; i < count && r == 0; i++) {
        r = take_dataset(reader, state);
    }
    r = r < 0 ? r : take_undone(reader, state, &last);
    r = r < 0 ? r : take_suspects(reader, state, &last);
    take_aside(reader, state);
    bool good = !reader->bad && reader->at == reader->end && !shard_check(state);
    return r < 0 ? r : good ? 0 : MUSTER_EDATA;
}

int shard_restore(const void *bytes, size_t size_bytes, uint32_t ranges_max,
                  struct shard_state **ret)
{
    struct reader reader = {.at = bytes, .end = (const uint8_t *)bytes + size_bytes};
    struct shard_state *state = shard_new(ranges_max);
    int r = state ? take_all(&reader, state) : MUSTER_ENOMEM;
    if (r < 0) {
        shard_free(state);
        return r;
    }
    *ret = state;
    return 0;
}
