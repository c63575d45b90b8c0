/* Records that were in flight when a worker crashed: tried again in parts, alone, until one is left
 * or all are done. See internal.h. */
#include "shard/internal.h"
#include "shard/order.h"

#include <muster/err.h>

#include <assert.h>
#include <string.h>

struct shard_suspect *shard_suspect_free(struct shard_state *state, uint32_t dataset)
{
    for (size_t i = 0; i < state->suspect_count; i++) {
        if (state->suspects[i].owner == 0 && state->suspects[i].range.dataset == dataset) {
            return &state->suspects[i];
        }
    }
    return NULL;
}

bool shard_suspect_next(const struct shard_state *state, uint32_t dataset,
                        const struct shard_range *after, struct shard_range *next)
{
    for (size_t i = 0; i < state->suspect_count; i++) {
        const struct shard_suspect *suspect = &state->suspects[i];
        bool comes = suspect->owner == 0 && suspect->range.dataset == dataset &&
                     (!after || shard_range_compare(suspect->range, *after) > 0);
        if (comes) { /* suspects are sorted */
            bool nearer = shard_range_compare(suspect->range, *next) < 0;
            *next = nearer ? suspect->range : *next;
            return nearer;
        }
    }
    return false;
}

struct shard_suspect *shard_suspect_in(const struct shard_state *state, struct shard_range range)
{
    for (size_t i = 0; i < state->suspect_count; i++) { /* suspects are sorted */
        if (shard_range_overlaps(state->suspects[i].range, range)) {
            return (struct shard_suspect *)&state->suspects[i];
        }
    }
    return NULL;
}

static void drop(struct shard_state *state, struct shard_suspect *suspect)
{
    state->suspect_count--;
    size_t place = (size_t)(suspect - state->suspects);
    memmove(suspect, suspect + 1, (state->suspect_count - place) * sizeof *suspect);
}

/* Adds a suspect. If there is no room, records that no owner holds are to do again, as if they were
 * not suspected; a node must be reserved for this. */
void shard_suspect_add(struct shard_state *state, struct shard_suspect suspect)
{
    if (state->suspect_count == SHARD_SUSPECTS_MAX) {
        if (suspect.owner == 0) {
            int rc = shard_set_add(&state->data[suspect.range.dataset].to_do, suspect.range);
            assert(rc == 0);
        }
        return;
    }
    size_t place = state->suspect_count++;
    for (; place > 0 && shard_range_compare(state->suspects[place - 1].range, suspect.range) > 0;
         place--) {
        state->suspects[place] = state->suspects[place - 1];
    }
    state->suspects[place] = suspect;
}

void shard_suspect_clear(struct shard_state *state, struct shard_range range)
{
    for (struct shard_suspect *found; (found = shard_suspect_in(state, range)) != NULL;) {
        struct shard_suspect before = *found, after = *found;
        drop(state, found);
        if (before.range.first < range.first) {
            before.range.count = (uint32_t)(range.first - before.range.first);
            shard_suspect_add(state, before);
        }
        if (shard_range_end(after.range) > shard_range_end(range)) {
            after.range.count = (uint32_t)(shard_range_end(after.range) - shard_range_end(range));
            after.range.first = shard_range_end(range);
            shard_suspect_add(state, after);
        }
    }
}

/* ---- Set aside ---- */

static void start_order(const struct shard_state *state, uint32_t dataset, uint32_t epoch,
                        struct shard_order *ret)
{
    const struct shard_dataset *spec = &state->data[dataset].spec;
    shard_order_init(ret, shard_epoch_size(state, dataset, epoch), spec->block, spec->seed, dataset,
                     epoch);
}

static uint64_t record_at(const struct shard_state *state, struct shard_range range)
{
    struct shard_order order;
    start_order(state, range.dataset, range.epoch, &order);
    return shard_order_record(&order, range.first);
}

static bool is_aside(const struct shard_state *state, uint32_t dataset, uint64_t record)
{
    for (size_t i = 0; i < state->aside_count; i++) {
        if (state->aside[i].dataset == dataset && state->aside[i].record == record) {
            return true;
        }
    }
    return false;
}

/* Returns false if there is no room. In an epoch that is open the record is not skipped. */
static bool set_aside(struct shard_state *state, uint32_t dataset, uint64_t record)
{
    if (is_aside(state, dataset, record)) {
        return true;
    }
    if (state->aside_count == SHARD_ASIDE_MAX) {
        return false;
    }
    state->aside[state->aside_count++] = (struct shard_aside){dataset, record};
    return true;
}

void shard_aside_skip(struct shard_state *state, uint32_t dataset, struct shard_epoch *epoch)
{
    struct shard_order order;
    if (state->data[dataset].spec.overlap) {
        return; /* after a restart the epoch may open earlier or later than before */
    }
    start_order(state, dataset, epoch->epoch, &order);
    for (size_t i = 0; i < state->aside_count; i++) {
        const struct shard_aside *aside = &state->aside[i];
        if (aside->dataset == dataset && aside->record < epoch->size) {
            uint64_t position = shard_order_position(&order, aside->record);
            int rc = shard_set_remove(&state->data[dataset].to_do,
                                      (struct shard_range){dataset, epoch->epoch, position, 1});
            assert(rc == 0);
            epoch->done++;
        }
    }
}

int shard_leave_out(struct shard_state *state, const struct shard_part *parts, size_t count)
{
    bool good = count == 1 && parts[0].range.count == 1;
    int rc = good ? shard_parts_check(state, parts, count, &good) : 0;
    if (rc == 0 && good) {
        struct shard_range range = parts[0].range;
        good = set_aside(state, range.dataset, record_at(state, range));
        if (good) {
            shard_part_take(state, parts[0]);
            shard_suspect_clear(state, range);
            shard_epoch_of(&state->data[range.dataset], range.epoch)->done++;
        }
    }
    if (rc == 0 && !good && state->effects->count == 0) {
        shard_refuse(state, 0, count > 0 ? parts[0].range.dataset : 0, SHARD_BAD_REQUEST);
    }
    return rc;
}

/* ---- Blame ---- */

/* Names the record: it is the only one left, and it was in flight in every one of its crashes. */
static void name(struct shard_state *state, struct shard_suspect suspect)
{
    struct shard_data *data = &state->data[suspect.range.dataset];
    uint64_t record = record_at(state, suspect.range);
    bool aside = data->spec.set_aside && set_aside(state, suspect.range.dataset, record);
    if (aside) {
        shard_epoch_of(data, suspect.range.epoch)->done++;
    } else {
        state->failed = true;
        shard_suspect_add(state, suspect);
    }
    shard_emit(state, (struct shard_effect){.kind = aside ? SHARD_SET_ASIDE : SHARD_FAILED,
                                            .dataset = suspect.range.dataset,
                                            .range = suspect.range,
                                            .record = record,
                                            .count = suspect.tries});
}

uint32_t shard_suspect_parts(uint32_t records, uint32_t tries, uint32_t room)
{
    enum { PARTS_MAX = 32 };
    uint32_t parts = 1, most = room < PARTS_MAX ? room : PARTS_MAX;
    while (parts < most && (tries + 1 < SHARD_TRIES ? parts * parts : parts) < records) {
        parts++;
    }
    return parts;
}

static void split(struct shard_state *state, struct shard_suspect piece)
{
    uint32_t room = (uint32_t)(SHARD_SUSPECTS_MAX - state->suspect_count);
    uint32_t parts = shard_suspect_parts(piece.range.count, piece.tries, room);
    for (struct shard_suspect part = piece; parts > 0; parts--) {
        part.range = parts > 1
                         ? shard_range_take(&piece.range, (piece.range.count + parts - 1) / parts)
                         : piece.range;
        shard_suspect_add(state, part);
        shard_emit(state, (struct shard_effect){.kind = SHARD_SUSPECTED,
                                                .dataset = part.range.dataset,
                                                .range = part.range,
                                                .count = part.tries});
    }
}

/* A record that was alone in its crashes is guilty at the third one; of several records, some part
 * may be guilty. */
int shard_blame(struct shard_state *state, const struct shard_part *parts, size_t count)
{
    bool good;
    int rc = shard_nodes_reserve(&state->nodes, 2 * (uint32_t)count + 2 * SHARD_SUSPECTS_MAX);
    rc = rc < 0 ? rc : shard_parts_check(state, parts, count, &good);
    for (size_t i = 0; rc == 0 && good && i < count; i++) {
        const struct shard_suspect *earlier = shard_suspect_in(state, parts[i].range);
        struct shard_suspect piece = {parts[i].range, earlier ? earlier->tries + 1 : 1, 0};
        shard_part_take(state, parts[i]);
        shard_suspect_clear(state, piece.range);
        if (count == 1 && piece.range.count == 1 && piece.tries >= SHARD_TRIES) {
            name(state, piece);
        } else {
            split(state, piece);
        }
    }
    return rc;
}
