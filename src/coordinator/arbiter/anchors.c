/* Steps whose number of micro-batches follows the workers of their generation: what OPEN says of
 * them, and the check of a step. See internal.h. */
#include "coordinator/arbiter/internal.h"

#include "base/err.h"

/* Finds the data set whose steps follow the workers; there is at most one. */
static bool find(const struct shard_state *shard, struct shard_progress *ret, uint32_t *ret_number)
{
    for (*ret_number = 0; shard_progress(shard, *ret_number, ret); ++*ret_number) {
        if (ret->dataset.per_worker) {
            return true;
        }
    }
    return false;
}

static struct shard_extent extent_of(const struct shard_dataset *spec)
{
    return (struct shard_extent){
        .records = spec->size, .epochs = spec->epochs, .batch = spec->batch};
}

static int fail(struct muster_err *err, uint64_t generation)
{
    return muster_fail(err, MUSTER_EDATA,
                       "generation %llu does not begin where the records of its log end",
                       (unsigned long long)generation);
}

/* ---- A generation ---- */

static uint32_t count_next(const struct arbiter *a)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < a->rendezvous->room; i++) {
        count += a->rendezvous->peers[i].next;
    }
    return count;
}

/* Sets the anchor at a checkpoint. The log has no steps after the checkpoint, and no worker has
 * begun with the next step. */
static void anchor_at_checkpoint(struct arbiter *a, uint64_t version, uint32_t later,
                                 struct shard_anchor *ret)
{
    struct shard_state *shard = NULL;
    struct shard_progress data = {0};
    uint32_t number;
    arbiter_fail(a, ledger_look_back(&a->ledger, version, &shard, a->err));
    if (shard) {
        (void)find(shard, &data, &number);
    }
    *ret = (struct shard_anchor){.version = version,
                                 .epoch = data.epoch,
                                 .position = data.epoch_done,
                                 .next = later,
                                 .later = later};
    shard_free(shard);
}

void arbiter_anchor_move(struct arbiter *a, const struct rendezvous_effect *effect)
{
    struct shard_progress data;
    struct shard_anchor anchor = {.version = effect->version};
    uint32_t number;
    a->anchor_before = a->anchor;
    a->anchored = effect->generation;
    if (!find(a->ledger.shard, &data, &number)) {
        return;
    }
    const struct shard_dataset *spec = &data.dataset;
    uint32_t later = shard_anchor_later(spec->batch, spec->micro_batches, count_next(a));
    if (effect->restore || a->anchor.later == 0) {
        anchor_at_checkpoint(a, effect->version, later, &anchor);
    } else if (effect->version < a->anchor.version ||
               effect->version > shard_anchor_last(&a->anchor, extent_of(spec))) {
        arbiter_fail(a, fail(a->err, effect->generation));
    } else {
        anchor = shard_anchor_move(&a->anchor, extent_of(spec), effect->version, later);
    }
    a->anchor = anchor;
}

/* Whether the anchor agrees with the present log. If steps have followed (in a snapshot), nothing
 * can be compared. */
static bool is_of_log(const struct arbiter *a, const struct shard_progress *data,
                      const struct shard_anchor *anchor)
{
    bool begins = a->ledger.version == anchor->version;
    return !begins || (anchor->epoch == data->epoch && anchor->position == data->epoch_done);
}

void arbiter_anchor_take(struct arbiter *a, const struct wire_open *open)
{
    struct shard_progress data;
    uint32_t number;
    bool fits = open->anchor.later == 0;
    if (find(a->ledger.shard, &data, &number)) {
        fits = shard_anchor_valid(&open->anchor, extent_of(&data.dataset), open->base) &&
               is_of_log(a, &data, &open->anchor);
    }
    if (!fits) {
        arbiter_fail(a, fail(a->err, open->generation));
    }
    a->anchor = a->anchor_before = open->anchor;
    a->anchored = open->generation;
}

const struct shard_anchor *arbiter_anchor_of(const struct arbiter *a, uint64_t generation)
{
    return generation == a->anchored ? &a->anchor : &a->anchor_before;
}

/* ---- Steps ---- */

/* Returns the anchor of the next step. The step that the record of a generation commits belongs to
 * the generation before it. */
static const struct shard_anchor *anchor_now(const struct arbiter *a)
{
    return a->ledger.version < a->anchor.version ? &a->anchor_before : &a->anchor;
}

/* Returns the anchor of a data set's steps, whether or not their size follows the workers. */
static struct shard_anchor anchor_in(const struct shard_anchor *anchor,
                                     const struct shard_dataset *spec)
{
    return spec->per_worker && anchor->later > 0 ? *anchor
                                                 : shard_anchor_alike(spec->micro_batches);
}

uint32_t arbiter_step_positions(const struct arbiter *a, const struct shard_progress *data)
{
    const struct shard_dataset *spec = &data->dataset;
    struct shard_anchor anchor = anchor_in(anchor_now(a), spec);
    uint64_t left = spec->size - data->epoch_done;
    uint64_t each =
        (uint64_t)spec->batch * (a->ledger.version == anchor.version ? anchor.next : anchor.later);
    return (uint32_t)(left < each ? left : each);
}

int arbiter_anchor_check(const struct arbiter *a, const struct wire_step *step,
                         struct muster_err *err)
{
    struct shard_progress data;
    uint32_t number;
    uint64_t has = 0;
    if (!find(a->ledger.shard, &data, &number)) {
        return 0;
    }
    for (uint32_t i = 0; i < step->ranges.count; i++) {
        has += step->ranges.list[i].dataset == number ? step->ranges.list[i].count : 0;
    }
    uint32_t due = arbiter_step_positions(a, &data);
    if (has == due && anchor_now(a)->later > 0) {
        return 0;
    }
    return muster_fail(err, MUSTER_EDATA,
                       "step %llu cannot count: it has %llu records, and by the workers of its "
                       "generation it has %u",
                       (unsigned long long)step->version, (unsigned long long)has, due);
}

uint64_t arbiter_positions_until(const struct arbiter *a, const struct shard_dataset *spec,
                                 uint64_t version, uint64_t all)
{
    struct shard_anchor anchor = anchor_in(&a->anchor, spec);
    struct shard_extent extent = extent_of(spec);
    if (spec->micro_batches == 0 || version == 0) {
        return all;
    }
    if (version < anchor.version || version >= shard_anchor_last(&anchor, extent)) {
        return all;
    }
    struct shard_place place = shard_anchor_place(&anchor, extent, version);
    return place.epoch * spec->size + place.position;
}
