/* Records that workers die of. The records that a worker has at hand when it dies are suspected,
 * and tried again in parts, so small that one record is left for the ARBITER_TRIES-th death: it is
 * named, and set aside, or the job fails. If a worker was killed from outside, or pre-empted, no
 * record is suspected.
 *
 * The cause of a death may become known only when the others are at work again, in a generation
 * that was opened without a suspicion: then this generation is closed (step.c), and the next one is
 * opened with the suspicion. See internal.h.
 */
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
        card->told_in = told->generation;
    }
}

/* ---- Suspects: they do not overlap ---- */

/* Returns how many workers have died of records in the range; *ret_met: how many suspects the range
 * overlaps. */
static uint32_t tries_of(const struct arbiter *a, struct shard_range range, uint32_t *ret_met)
{
    uint32_t tries = 0;
    *ret_met = 0;
    for (uint32_t i = 0; i < a->suspect_count; i++) {
        const struct arbiter_suspect *known = &a->suspects[i];
        if (shard_range_overlaps(known->range, range)) {
            tries = known->tries > tries ? known->tries : tries;
            ++*ret_met;
        }
    }
    return tries;
}

/* Adds a suspect. If there is no room, it is dropped: more workers have to die until the record is
 * named. */
static void keep_suspect(struct arbiter *a, struct arbiter_suspect suspect)
{
    if (suspect.range.count > 0 && a->suspect_count < WIRE_SUSPECTS_MAX) {
        a->suspects[a->suspect_count++] = suspect;
    }
}

static void suspect(struct arbiter *a, struct shard_range range, uint32_t tries)
{
    keep_suspect(a, (struct arbiter_suspect){.range = range, .tries = tries});
}

/* Clears the range of suspicion. The parts of a suspect before and after the range stay
 * suspects. */
static void clear(struct arbiter *a, struct shard_range range)
{
    struct arbiter_suspect kept[WIRE_SUSPECTS_MAX];
    uint32_t count = a->suspect_count;
    memcpy(kept, a->suspects, count * sizeof *kept);
    a->suspect_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct arbiter_suspect before = kept[i], behind = kept[i];
        uint64_t first = before.range.first, end = shard_range_end(before.range);
        if (!shard_range_overlaps(before.range, range)) {
            keep_suspect(a, before);
            continue;
        }
        before.range.count = range.first > first ? (uint32_t)(range.first - first) : 0;
        behind.range.first = shard_range_end(range);
        behind.range.count = end > behind.range.first ? (uint32_t)(end - behind.range.first) : 0;
        keep_suspect(a, before);
        keep_suspect(a, behind);
    }
}

static void split(struct arbiter *a, struct shard_range range, uint32_t tries)
{
    clear(a, range);
    uint32_t room = WIRE_SUSPECTS_MAX - a->suspect_count;
    for (uint32_t left = shard_suspect_parts(range.count, tries, room); left > 1; left--) {
        suspect(a, shard_range_take(&range, (range.count + left - 1) / left), tries);
    }
    suspect(a, range, tries);
}

/* Notes which suspects the members of the generation know. An OPEN that is sent again while its
 * generation is being closed reaches only one member, and does not count. */
void arbiter_blame_note_open(struct arbiter *a)
{
    if (a->rendezvous->phase != RENDEZVOUS_RUNNING || a->asides_opened != a->asides.count) {
        return;
    }
    a->blames_told = a->blames;
    for (uint32_t i = 0; i < a->suspect_count; i++) {
        struct arbiter_suspect *each = &a->suspects[i];
        each->opened_with = each->opened_with ? each->opened_with : a->rendezvous->generation;
    }
}

void arbiter_blame_clear(struct arbiter *a, const struct wire_ranges *ranges)
{
    for (uint32_t i = 0; i < ranges->count && a->suspect_count > 0; i++) {
        clear(a, ranges->list[i]);
    }
}

uint32_t arbiter_blame_list(const struct arbiter *a, struct shard_range *ret)
{
    for (uint32_t i = 0; i < a->suspect_count; i++) {
        ret[i] = a->suspects[i].range;
    }
    return a->suspect_count;
}

/* ---- Naming records ---- */

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

void arbiter_blame_say(const struct shard_dataset *spec, struct shard_range range, uint32_t tries,
                       struct buf *text)
{
    buf_format(text, "%u workers died, one after the other, of %s ", tries,
               range.count > 1 ? "the same pass: records" : "record");
    name_records(spec, range, text);
    if (spec->name[0]) {
        buf_format(text, " of data set \"%s\"", spec->name);
    }
    buf_format(text, ", in epoch %u of %u", range.epoch + 1, spec->epochs);
}

void arbiter_blame_say_aside(struct arbiter *a, uint64_t record, const struct buf *why)
{
    struct arbiter_effect said = {.kind = ARBITER_ASIDE, .offset = a->out->bytes.used};
    buf_format(&a->out->bytes, "record %" PRIu64 " is set aside: %s", record, buf_str(why));
    said.count = a->out->bytes.used - said.offset;
    arbiter_fail(a, arbiter_effects_add(a->out, said, a->err));
}

/* Sets a record aside. The members of the next generation are informed. */
static void set_aside(struct arbiter *a, const struct aside *aside, const struct buf *why)
{
    size_t offset = a->out->bytes.used;
    asides_write(&a->asides, a->asides.count - 1, &a->out->bytes);
    arbiter_append(a, ENTRY_ASIDE, offset);
    arbiter_blame_say_aside(a, aside->record, why);
}

/* Names one record of which workers died, or several that cannot be distinguished. */
static void give_up(struct arbiter *a, struct shard_range range, uint32_t tries)
{
    struct shard_progress data = {0};
    struct shard_order order;
    struct buf why;
    buf_init(&why, TEXT_BYTES);
    (void)shard_progress(a->ledger.shard, range.dataset, &data);
    const struct shard_dataset *spec = &data.dataset;
    arbiter_blame_say(spec, range, tries, &why);
    shard_order_init(&order, spec->size, spec->block, spec->seed, range.dataset, range.epoch);
    const struct aside aside = {.dataset = range.dataset,
                                .epoch = range.epoch,
                                .record = shard_order_record(&order, range.first),
                                .deaths = tries};
    bool known = asides_have(&a->asides, aside.dataset, aside.record);
    if (!spec->set_aside || range.count > 1 || !(known || asides_add(&a->asides, &aside))) {
        arbiter_fail_job(a, buf_str(&why));
    } else if (!known) {
        set_aside(a, &aside, &why);
    }
    clear(a, range);
    buf_done(&why);
}

/* ---- Deaths ---- */

/* Suspects the whole next step, because the pass was too short to be reported: from now on workers
 * report passes of this step. */
static void suspect_next_step(struct arbiter *a)
{
    struct shard_progress data;
    for (uint32_t i = 0; shard_progress(a->ledger.shard, i, &data); i++) {
        const struct shard_dataset *spec = &data.dataset;
        if (spec->micro_batches > 0 && data.epoch < spec->epochs) {
            const struct shard_range step = {.dataset = i,
                                             .epoch = data.epoch,
                                             .first = data.epoch_done,
                                             .count = arbiter_step_positions(a, &data)};
            uint32_t met;
            (void)tries_of(a, step, &met);
            if (met == 0) {
                suspect(a, step, 0);
                a->blames++;
            }
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

/* Whether the member computes no parts of a pass. It had parts of several suspects at hand although
 * it knew the suspects, so that one cannot know of which of them it died. */
static bool computes_no_parts(const struct arbiter *a, const struct arbiter_death *death)
{
    for (uint32_t i = 0; i < a->suspect_count; i++) {
        const struct arbiter_suspect *each = &a->suspects[i];
        if (shard_range_overlaps(each->range, death->at_hand) &&
            (each->opened_with == 0 || each->opened_with > death->told_in)) {
            return false;
        }
    }
    return true;
}

static void blame(struct arbiter *a, const struct arbiter_death *death)
{
    struct shard_range at_hand = death->at_hand;
    uint32_t met, tries = tries_of(a, at_hand, &met) + 1;
    if (tries < ARBITER_TRIES || (at_hand.count > 1 && met == 1)) {
        split(a, at_hand, tries);
    } else if (at_hand.count == 1 || computes_no_parts(a, death)) {
        give_up(a, at_hand, tries);
    } else {
        return; /* it died of one of several suspects, which are tried alone from now on */
    }
    a->blames++;
}

/* Whether the generation without the member has committed a step: then no pass of the one before is
 * left. */
static bool is_over(const struct arbiter *a, const struct arbiter_death *death)
{
    return !rendezvous_find(a->rendezvous, death->incarnation) &&
           a->rendezvous->logged > a->rendezvous->base;
}

static void judge(struct arbiter *a, const struct arbiter_death *death, enum arbiter_cause cause)
{
    bool own = cause == ARBITER_CAUSE_OWN || cause == ARBITER_CAUSE_ENDED;
    if (cause == ARBITER_CAUSE_OUTSIDE) {
        return;
    }
    if (death->at_hand.count == 0) {
        if (own && !is_over(a, death)) {
            suspect_next_step(a);
        }
    } else if (!is_trained(a, death->at_hand)) {
        blame(a, death);
    }
}

/* Keeps a death until its cause is known. If there is no room, the oldest one is dropped, and never
 * judged. */
static void keep(struct arbiter *a, const struct arbiter_death *death)
{
    if (a->death_count == ARBITER_DEATHS_MAX) {
        a->death_count--;
        memmove(a->deaths, a->deaths + 1, a->death_count * sizeof a->deaths[0]);
    }
    a->deaths[a->death_count++] = *death;
}

void arbiter_blame_settle(struct arbiter *a, uint64_t incarnation, enum arbiter_cause cause)
{
    for (uint32_t i = 0; i < a->death_count; i++) {
        struct arbiter_death death = a->deaths[i];
        if (death.incarnation == incarnation) {
            a->deaths[i] = a->deaths[--a->death_count];
            judge(a, &death, cause);
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
    const struct arbiter_death death = {card->incarnation, card->at_hand, card->told_in};
    if (cause == ARBITER_CAUSE_PENDING) {
        keep(a, &death);
    } else {
        judge(a, &death, cause);
    }
}

void arbiter_blame_dead(struct arbiter *a, uint64_t incarnation, enum arbiter_cause cause)
{
    const struct rendezvous_peer *peer = rendezvous_find(a->rendezvous, incarnation);
    struct card *card = arbiter_card(a, incarnation);
    bool leaves = peer && peer->leaving; /* if a member asks to leave and dies, it was pre-empted */
    if (card) {
        take_death(a, card, leaves ? ARBITER_CAUSE_OUTSIDE : cause);
    }
}

/* Judges a member whose connection has ended and that did not come back, whether another member has
 * lost it, too, or it was given up. If it is on this host, its cause will be reported: others may
 * have killed it because it was stopped. */
void arbiter_blame_left_out(struct arbiter *a, uint64_t incarnation, enum rendezvous_reason reason)
{
    bool died = reason == RENDEZVOUS_SILENT || reason == RENDEZVOUS_DIED;
    for (uint32_t i = 0; i < a->rendezvous->room; i++) {
        struct card *card = &a->cards[i];
        if (card->incarnation == incarnation && card->away && died) {
            take_death(a, card, card->watched ? ARBITER_CAUSE_PENDING : ARBITER_CAUSE_UNKNOWN);
        }
    }
}
