/* Records that workers die of. A pass that is at hand of a worker which dies is suspected; once
 * ARBITER_TRIES have died of one and the same, its records are named, and the job fails. Workers
 * that were killed from outside, or pre-empted, died of nothing. See internal.h. */
#include "coordinator/arbiter/internal.h"

#include "shard/order.h"

#include <inttypes.h>
#include <string.h>

enum { NAMED_MAX = 64, TEXT_BYTES = 2048 };

static bool is_planned(const struct arbiter *a, struct shard_range range)
{
    struct shard_progress data;
    return shard_progress(a->ledger.shard, range.dataset, &data) &&
           data.dataset.micro_batches > 0 && range.epoch < data.dataset.epochs &&
           range.count <= data.dataset.batch && shard_range_end(range) <= data.dataset.size;
}

void arbiter_blame_hear(struct arbiter *a, struct card *card, const struct wire_pass *told)
{
    struct shard_range none = {0};
    struct shard_range range = told->at_hand.count > 0 ? told->at_hand.list[0] : none;
    if (card && (range.count == 0 || is_planned(a, range))) {
        arbiter_hang_note(a, card, range);
        card->at_hand = range;
    }
}

/* ---- Suspects ---- */

static struct arbiter_suspect *find(struct arbiter *a, struct shard_range range)
{
    for (uint32_t i = 0; i < a->suspect_count; i++) {
        struct shard_range known = a->suspects[i].range;
        if (shard_range_compare(known, range) == 0 && known.count == range.count) {
            return &a->suspects[i];
        }
    }
    return NULL;
}

/* Where there is no room nothing is suspected: then more workers have to die. */
static struct arbiter_suspect *suspect(struct arbiter *a, struct shard_range range)
{
    struct arbiter_suspect *found = find(a, range);
    if (!found && a->suspect_count < WIRE_SUSPECTS_MAX) {
        found = &a->suspects[a->suspect_count++];
        *found = (struct arbiter_suspect){.range = range};
    }
    return found;
}

void arbiter_blame_clear(struct arbiter *a, const struct wire_ranges *ranges)
{
    for (uint32_t i = 0; i < ranges->count && a->suspect_count > 0; i++) {
        for (uint32_t s = a->suspect_count; s-- > 0;) {
            if (shard_range_overlaps(a->suspects[s].range, ranges->list[i])) {
                a->suspects[s] = a->suspects[--a->suspect_count];
            }
        }
    }
}

uint32_t arbiter_blame_list(const struct arbiter *a, struct shard_range *ret)
{
    for (uint32_t i = 0; i < a->suspect_count; i++) {
        ret[i] = a->suspects[i].range;
    }
    return a->suspect_count;
}

/* ---- Naming them ---- */

static void name_records(const struct shard_dataset *spec, struct shard_range range,
                         struct buf *text)
{
    struct shard_order order;
    uint32_t named = range.count < NAMED_MAX ? range.count : NAMED_MAX;
    shard_order_init(&order, spec->size, spec->block, spec->seed, range.dataset, range.epoch);
    for (uint32_t i = 0; i < named; i++) {
        buf_format(text, "%s%" PRIu64, i > 0 ? ", " : "",
                   shard_order_record(&order, range.first + i));
    }
    if (named < range.count) {
        buf_format(text, " and %u more", range.count - named);
    }
}

static void give_up(struct arbiter *a, const struct arbiter_suspect *suspect)
{
    struct shard_progress data = {0};
    struct shard_range range = suspect->range;
    struct buf text;
    buf_init(&text, TEXT_BYTES);
    (void)shard_progress(a->ledger.shard, range.dataset, &data);
    buf_format(&text, "%u workers died, one after the other, of the same pass: record%s ",
               suspect->tries, range.count > 1 ? "s" : "");
    name_records(&data.dataset, range, &text);
    if (data.dataset.name[0]) {
        buf_format(&text, " of data set \"%s\"", data.dataset.name);
    }
    buf_format(&text, ", in epoch %u of %u", range.epoch + 1, data.dataset.epochs);
    arbiter_fail_job(a, buf_str(&text));
    buf_done(&text);
}

/* ---- Deaths ---- */

/* The pass was too short to be told of: workers tell of those of this step from now on. */
static void suspect_next_step(struct arbiter *a)
{
    struct shard_progress data;
    for (uint32_t i = 0; shard_progress(a->ledger.shard, i, &data); i++) {
        const struct shard_dataset *spec = &data.dataset;
        if (spec->micro_batches > 0 && data.epoch < spec->epochs) {
            uint64_t each = (uint64_t)spec->batch * spec->micro_batches;
            uint64_t left = spec->size - data.epoch_done;
            (void)suspect(a, (struct shard_range){.dataset = i,
                                                  .epoch = data.epoch,
                                                  .first = data.epoch_done,
                                                  .count = (uint32_t)(left < each ? left : each)});
            return;
        }
    }
}

static bool is_trained(const struct arbiter *a, struct shard_range range)
{
    struct shard_progress data;
    return shard_progress(a->ledger.shard, range.dataset, &data) &&
           (data.epoch > range.epoch ||
            (data.epoch == range.epoch && data.epoch_done > range.first));
}

static void judge(struct arbiter *a, struct shard_range at_hand, enum arbiter_cause cause)
{
    struct arbiter_suspect *found = NULL;
    if (cause == ARBITER_CAUSE_OUTSIDE || (at_hand.count > 0 && is_trained(a, at_hand))) {
        return;
    }
    if (at_hand.count > 0) {
        found = suspect(a, at_hand);
    } else if (cause == ARBITER_CAUSE_OWN) {
        suspect_next_step(a);
    }
    if (found && ++found->tries >= ARBITER_TRIES) {
        give_up(a, found);
    }
}

/* Without room the oldest is never judged. */
static void keep(struct arbiter *a, uint64_t incarnation, struct shard_range at_hand)
{
    if (a->death_count == ARBITER_DEATHS_MAX) {
        a->death_count--;
        memmove(a->deaths, a->deaths + 1, a->death_count * sizeof a->deaths[0]);
    }
    a->deaths[a->death_count++] = (struct arbiter_death){incarnation, at_hand};
}

void arbiter_blame_settle(struct arbiter *a, uint64_t incarnation, enum arbiter_cause cause)
{
    for (uint32_t i = 0; i < a->death_count; i++) {
        struct arbiter_death death = a->deaths[i];
        if (death.incarnation == incarnation) {
            a->deaths[i] = a->deaths[--a->death_count];
            judge(a, death.at_hand, cause);
            return;
        }
    }
}

static void take_death(struct arbiter *a, struct card *card, enum arbiter_cause cause)
{
    if (card->judged) {
        return;
    }
    card->judged = true;
    if (cause == ARBITER_CAUSE_PENDING) {
        keep(a, card->incarnation, card->at_hand);
    } else {
        judge(a, card->at_hand, cause);
    }
}

void arbiter_blame_dead(struct arbiter *a, uint64_t incarnation, enum arbiter_cause cause)
{
    const struct rendezvous_peer *peer = rendezvous_find(a->rendezvous, incarnation);
    struct card *card = arbiter_card(a, incarnation);
    bool leaves = peer && peer->leaving; /* who asks to leave and dies was pre-empted */
    if (card) {
        take_death(a, card, leaves ? ARBITER_CAUSE_OUTSIDE : cause);
    }
}

/* One on another host, whose connection has ended, and which did not come back. */
void arbiter_blame_left_out(struct arbiter *a, uint64_t incarnation, enum rendezvous_reason reason)
{
    for (uint32_t i = 0; i < a->rendezvous->room; i++) {
        struct card *card = &a->cards[i];
        if (card->incarnation == incarnation && card->away && reason == RENDEZVOUS_SILENT) {
            take_death(a, card, ARBITER_CAUSE_UNKNOWN);
        }
    }
}
