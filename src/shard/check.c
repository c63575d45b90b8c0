/* Invariants that hold between steps, for tests. See shard_check in shard.h. */
#include "shard/internal.h"

#include <assert.h>

/* Adds a set's records to the counts. Ranges that overlap are a fault. */
static const char *count_set(const struct shard_set *set, uint64_t *counted)
{
    uint64_t records = 0;
    size_t ranges = 0;
    struct shard_range range, last = {0};
    for (bool more = shard_set_first(set, &range); more;
         more = shard_set_next(set, range, &range)) {
        if (ranges > 0 && shard_range_same_epoch(last, range) &&
            shard_range_end(last) > range.first) {
            return "the ranges of a set overlap";
        }
        counted[range.dataset] += range.count;
        records += range.count;
        last = range;
        ranges++;
    }
    return records == set->records && ranges == set->ranges ? NULL : "a set is counted wrongly";
}

static const char *check_suspects(const struct shard_state *state, uint64_t *counted)
{
    for (size_t i = 0; i < state->suspect_count; i++) {
        const struct shard_suspect *suspect = &state->suspects[i];
        const struct shard_owner *owner = shard_owner_of(state, suspect->owner);
        if (i > 0 && shard_range_compare(suspect[-1].range, suspect->range) >= 0) {
            return "suspects are not sorted";
        }
        if (suspect->owner == 0) {
            counted[suspect->range.dataset] += suspect->range.count;
        } else if (!owner || !owner->alone || !shard_set_contains(&owner->held, suspect->range)) {
            return "a suspect is held by one who does not have it alone";
        }
    }
    return NULL;
}

/* Checks that every position of an open epoch is to do, held, suspected or done. */
static const char *check_counts(const struct shard_state *state, const uint64_t *counted)
{
    for (uint32_t i = 0; i < state->data_count; i++) {
        const struct shard_data *data = &state->data[i];
        uint64_t undone = 0;
        for (size_t j = 0; j < data->open_count; j++) {
            undone += data->open[j].size - data->open[j].done;
            if (data->open[j].done >= data->open[j].size && j == 0) {
                return "an epoch is open and done";
            }
        }
        if (undone != counted[i]) {
            return "records are missing, or in two places";
        }
        if (data->waiting.count > state->owner_count) {
            return "more workers wait than there are";
        }
        if (state->serving && !state->owes && data->waiting.count > 0 && shard_data_ended(data)) {
            return "a worker waits for what has ended";
        }
    }
    return NULL;
}

/* Checks that no range has two owners, and none is both held and to do. */
static const char *check_owners(const struct shard_state *state)
{
    struct shard_range range;
    for (size_t i = 0; i < state->owner_count; i++) {
        const struct shard_set *held = &state->owners[i]->held;
        for (bool more = shard_set_first(held, &range); more;
             more = shard_set_next(held, range, &range)) {
            if (shard_set_overlaps(&state->data[range.dataset].to_do, range)) {
                return "records are held and to do";
            }
            for (size_t j = 0; j < i; j++) {
                if (shard_set_overlaps(&state->owners[j]->held, range)) {
                    return "records have two owners";
                }
            }
        }
    }
    return NULL;
}

const char *shard_check(const struct shard_state *state)
{
    uint64_t counted[SHARD_DATASETS_MAX] = {0};
    const char *broken = NULL;
    for (uint32_t i = 0; i < state->data_count && !broken; i++) {
        broken = count_set(&state->data[i].to_do, counted);
    }
    for (size_t i = 0; i < state->owner_count && !broken; i++) {
        broken = count_set(&state->owners[i]->held, counted);
    }
    broken = broken ? broken : check_suspects(state, counted);
    broken = broken ? broken : check_counts(state, counted);
    return broken ? broken : check_owners(state);
}
