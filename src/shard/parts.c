/* Parts of what is held: committed, given back, or said to be held. See internal.h. */
#include "shard/internal.h"

#include <muster/err.h>

#include <assert.h>

/* ---- Where a part is ---- */

/* The first records of a part that are in the same place. */
struct place {
    struct shard_owner *owner; /* NULL: it is to do, or suspected */
    uint32_t count;            /* 0: they are in no place */
};

/* Records of a step mostly come in the order in which they were granted, so that the holder of the
 * next ones is not far. */
static struct place find_holder(struct shard_state *state, struct shard_range range)
{
    for (size_t i = 0; i < state->owner_count; i++) {
        size_t number = (state->last_holder + i) % state->owner_count;
        uint32_t count = shard_set_prefix(&state->owners[number]->held, range);
        if (count > 0) {
            state->last_holder = number;
            return (struct place){state->owners[number], count};
        }
    }
    return (struct place){0};
}

static uint32_t to_do_prefix(const struct shard_state *state, struct shard_range range)
{
    const struct shard_range front = {range.dataset, range.epoch, range.first, 1};
    const struct shard_suspect *suspect = shard_suspect_in(state, front);
    if (suspect) {
        uint64_t left = shard_range_end(suspect->range) - range.first;
        return suspect->owner ? 0 : left < range.count ? (uint32_t)left : range.count;
    }
    return range.dataset < state->data_count
               ? shard_set_prefix(&state->data[range.dataset].to_do, range)
               : 0;
}

static struct place find_front(struct shard_state *state, struct shard_part part)
{
    struct place place = {shard_owner_of(state, part.owner), 0};
    if (part.owner == SHARD_ANY_OWNER) {
        place = find_holder(state, part.range);
    } else if (place.owner) {
        place.count = shard_set_prefix(&place.owner->held, part.range);
    }
    if (place.count == 0 && (!state->serving || shard_is_planned(state, part.range.dataset))) {
        place = (struct place){NULL, to_do_prefix(state, part.range)};
    }
    return place;
}

static bool is_there(struct shard_state *state, struct shard_part part)
{
    struct place place;
    while ((place = find_front(state, part)).count > 0) {
        if (place.count == part.range.count) {
            return true;
        }
        (void)shard_range_take(&part.range, place.count);
    }
    return false;
}

int shard_parts_check(struct shard_state *state, const struct shard_part *parts, size_t count,
                      bool *ret_good)
{
    struct shard_set seen;
    enum shard_reason reason = SHARD_OK;
    size_t i = 0;
    int r = count < SHARD_RANGES_MAX ? 0 : MUSTER_ETOOBIG;
    r = r < 0 ? r : shard_nodes_reserve(&state->nodes, 2 * (uint32_t)count);
    if (r < 0) {
        return r;
    }
    shard_set_init(&seen, &state->nodes);
    for (; i < count && reason == SHARD_OK; i++) {
        shard_epochs_reach(state, parts[i].range);
        if (!shard_range_valid(parts[i].range) || !is_there(state, parts[i])) {
            reason = SHARD_NOT_HELD;
        } else if (shard_set_add(&seen, parts[i].range) < 0) {
            reason = SHARD_TWICE;
        }
    }
    shard_set_clear(&seen);
    if (reason != SHARD_OK) {
        shard_emit(state, (struct shard_effect){.kind = SHARD_REFUSED,
                                                .reason = reason,
                                                .owner = parts[i - 1].owner,
                                                .dataset = parts[i - 1].range.dataset,
                                                .range = parts[i - 1].range});
    }
    *ret_good = reason == SHARD_OK;
    return 0;
}

static void take_from(struct shard_set *set, struct shard_range range)
{
    int r = shard_set_remove(set, range);
    assert(r == 0);
}

/* Suspects that no owner holds are in no set. */
static void take_piece(struct shard_state *state, struct shard_owner *owner,
                       struct shard_range range)
{
    if (owner) {
        take_from(&owner->held, range);
        owner->alone = owner->alone && owner->held.ranges > 0;
    } else if (!shard_suspect_in(state, range)) {
        take_from(&state->data[range.dataset].to_do, range);
    }
}

void shard_part_take(struct shard_state *state, struct shard_part part)
{
    struct place place;
    while ((place = find_front(state, part)).count < part.range.count) {
        assert(place.count > 0);
        take_piece(state, place.owner, shard_range_take(&part.range, place.count));
    }
    take_piece(state, place.owner, part.range);
}

/* ---- Commit ---- */

int shard_commit(struct shard_state *state, const struct shard_part *parts, size_t count)
{
    bool good = shard_plan_check(state, parts, count);
    int r = good ? shard_parts_check(state, parts, count, &good) : 0;
    for (size_t i = 0; r == 0 && good && i < count; i++) {
        struct shard_range range = parts[i].range;
        shard_part_take(state, parts[i]);
        shard_suspect_clear(state, range);
        shard_epoch_of(&state->data[range.dataset], range.epoch)->done += range.count;
    }
    return r;
}

/* ---- Giving back ---- */

static void add_to_do(struct shard_state *state, struct shard_range range)
{
    int r = shard_set_add(&state->data[range.dataset].to_do, range);
    assert(r == 0);
}

/* Puts a range back: suspects stay suspects; the other records are to do again. */
static void put_back(struct shard_state *state, struct shard_range range)
{
    for (struct shard_suspect *suspect; (suspect = shard_suspect_in(state, range)) != NULL;) {
        struct shard_suspect piece = {.range = range, .tries = suspect->tries};
        if (suspect->range.first > range.first) {
            add_to_do(state,
                      shard_range_take(&range, (uint32_t)(suspect->range.first - range.first)));
            continue;
        }
        uint64_t end = shard_range_end(suspect->range);
        bool is_last = shard_range_end(range) <= end;
        if (!is_last) {
            piece.range = shard_range_take(&range, (uint32_t)(end - range.first));
        }
        shard_suspect_clear(state, piece.range);
        shard_suspect_add(state, piece);
        if (is_last) {
            return;
        }
    }
    add_to_do(state, range);
}

int shard_give_back(struct shard_state *state, const struct shard_part *parts, size_t count)
{
    bool good;
    int r = shard_nodes_reserve(&state->nodes, 2 * (uint32_t)count + 2 * SHARD_SUSPECTS_MAX);
    r = r < 0 ? r : shard_parts_check(state, parts, count, &good);
    for (size_t i = 0; r == 0 && good && i < count; i++) {
        shard_part_take(state, parts[i]);
        put_back(state, parts[i].range);
    }
    return r;
}

int shard_give_back_all(struct shard_state *state, struct shard_owner *owner)
{
    struct shard_range range;
    int r = shard_nodes_reserve(&state->nodes, 2 * SHARD_SUSPECTS_MAX);
    while (r == 0 && shard_set_first(&owner->held, &range)) {
        take_from(&owner->held, range);
        put_back(state, range);
    }
    return r;
}

/* ---- After a restart ---- */

/* Returns the beginning of the next piece that no owner holds; UINT64_MAX: this epoch has none. */
static uint64_t next_free(const struct shard_state *state, struct shard_range range)
{
    struct shard_range next;
    uint64_t first = UINT64_MAX;
    if (shard_set_next(&state->data[range.dataset].to_do, range, &next) &&
        shard_range_same_epoch(next, range)) {
        first = next.first;
    }
    for (size_t i = 0; i < state->suspect_count; i++) {
        struct shard_range suspect = state->suspects[i].range;
        if (state->suspects[i].owner == 0 && shard_range_same_epoch(suspect, range) &&
            suspect.first > range.first && suspect.first < first) {
            first = suspect.first;
        }
    }
    return first;
}

/* Moves the beginning of the range to `first`. Returns false if nothing of the range is left. */
static bool skip_to(struct shard_range *range, uint64_t first)
{
    if (first >= shard_range_end(*range)) {
        return false;
    }
    range->count = (uint32_t)(shard_range_end(*range) - first);
    range->first = first;
    return true;
}

static int hold_piece(struct shard_state *state, struct shard_owner *owner,
                      struct shard_range piece)
{
    int r = shard_nodes_reserve(&state->nodes, 4 + 2 * SHARD_SUSPECTS_MAX);
    if (r < 0) {
        return r;
    }
    struct shard_suspect *suspect = shard_suspect_in(state, piece);
    if (suspect) {
        struct shard_suspect held = {piece, suspect->tries, owner->incarnation};
        shard_suspect_clear(state, piece);
        shard_suspect_add(state, held);
        owner->alone = true;
    } else {
        take_from(&state->data[piece.dataset].to_do, piece);
    }
    r = shard_set_add(&owner->held, piece);
    assert(r == 0);
    return 0;
}

/* Holds a range piece by piece, because a part of the lease may have been committed since it was
 * granted. */
static int hold_pieces(struct shard_state *state, struct shard_owner *owner,
                       struct shard_range range, bool *ret_whole)
{
    for (;;) {
        uint32_t count = to_do_prefix(state, range);
        struct shard_range piece = {range.dataset, range.epoch, range.first, count};
        int r = count > 0 ? hold_piece(state, owner, piece) : 0;
        if (r < 0 || count == range.count) {
            return r;
        }
        if (count > 0) {
            (void)shard_range_take(&range, count);
        } else {
            *ret_whole = false;
            if (!skip_to(&range, next_free(state, range))) {
                return 0;
            }
        }
    }
}

static int hold_one(struct shard_state *state, struct shard_part part)
{
    struct shard_owner *owner = shard_owner_of(state, part.owner);
    bool known = shard_range_valid(part.range) && part.range.dataset < state->data_count &&
                 !shard_is_planned(state, part.range.dataset);
    bool whole = owner && !state->serving && known;
    int r = 0;
    if (whole) {
        shard_epochs_reach(state, part.range);
        r = hold_pieces(state, owner, part.range, &whole);
    }
    if (!whole) {
        enum shard_reason reason = owner ? SHARD_NOT_HELD : SHARD_NO_OWNER;
        shard_emit(state, (struct shard_effect){.kind = SHARD_REFUSED,
                                                .reason = reason,
                                                .owner = part.owner,
                                                .dataset = part.range.dataset,
                                                .range = part.range});
    }
    return r;
}

/* Refuses records that are committed or that another owner holds; the other records of the part are
 * held. */
int shard_hold(struct shard_state *state, const struct shard_part *parts, size_t count)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < count; i++) {
        r = hold_one(state, parts[i]);
    }
    return r;
}
