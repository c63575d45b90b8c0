/* Records that were in flight when a worker crashed: tried again in halves, alone, until one is
 * left or all are done. See internal.h. */
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

struct shard_suspect *shard_suspect_in(const struct shard_state *state, struct shard_range range)
{
    for (size_t i = 0; i < state->suspect_count; i++) { /* they are sorted */
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

/* Without room what nobody holds is to do again, as if it were not suspected; a node was reserved.
 */
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

/* ---- Blame ---- */

static uint64_t record_at(const struct shard_state *state, struct shard_range range)
{
    const struct shard_dataset *spec = &state->data[range.dataset].spec;
    struct shard_order order;
    uint64_t size = shard_epoch_size(state, range.dataset, range.epoch);
    shard_order_init(&order, size, spec->block, spec->seed, range.dataset, range.epoch);
    return shard_order_record(&order, range.first);
}

/* One record is left, and it was in flight in every one of its crashes. */
static void name(struct shard_state *state, struct shard_suspect suspect)
{
    struct shard_data *data = &state->data[suspect.range.dataset];
    uint64_t record = record_at(state, suspect.range);
    bool aside = data->spec.set_aside && state->aside_count < SHARD_ASIDE_MAX;
    if (aside) {
        state->aside[state->aside_count++] = (struct shard_aside){suspect.range.dataset, record};
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

static void suspect_again(struct shard_state *state, struct shard_suspect piece)
{
    shard_suspect_add(state, piece);
    shard_emit(state, (struct shard_effect){.kind = SHARD_SUSPECTED,
                                            .dataset = piece.range.dataset,
                                            .range = piece.range,
                                            .count = piece.tries});
}

/* A record that was alone in its crash is guilty, at the third time; of a range one half may be. */
static void blame_range(struct shard_state *state, struct shard_suspect piece)
{
    if (piece.range.count == 1 && piece.tries >= SHARD_TRIES) {
        name(state, piece);
        return;
    }
    if (piece.range.count > 1) {
        struct shard_suspect half = piece;
        half.range = shard_range_take(&piece.range, piece.range.count / 2);
        suspect_again(state, half);
    }
    suspect_again(state, piece);
}

/* A single range is tried again in halves, several ranges one by one. */
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
        if (count == 1) {
            blame_range(state, piece);
        } else {
            suspect_again(state, piece);
        }
    }
    return rc;
}
