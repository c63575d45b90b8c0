/* Handles grants, between the members' messages and the table of records. See internal.h. */
#include "coordinator/arbiter/internal.h"

#include "base/cleanup.h"
#include "base/err.h"

enum { RANGES_OF_A_FRAME = 4096 };

static void send_grant(struct arbiter *a, uint64_t to, const struct shard_range *ranges,
                       uint32_t count, bool last)
{
    const struct wire_grant grant = {.incarnation = to, .last = last, .ranges = {ranges, count}};
    arbiter_send_grant(a, to, &grant);
}

/* ---- Effects of the table ---- */

static size_t send_granted(struct arbiter *a, const struct shard_effects *effects, size_t first)
{
    struct shard_range ranges[SHARD_EFFECTS_MAX];
    uint64_t owner = effects->list[first].owner;
    uint32_t count = arbiter_granted_to_one(effects, first, ranges);
    struct card *card = arbiter_card(a, owner);
    if (card) {
        card->waits = 0;
    }
    send_grant(a, owner, ranges, count, false);
    return first + count;
}

/* Requests records again, because the next data set may have some. */
static void ask_again(struct arbiter *a, uint64_t owner)
{
    struct card *card = arbiter_card(a, owner);
    if (card) {
        arbiter_records_ask(a, card, card->waits);
    }
}

static void note_expired(struct arbiter *a, uint64_t owner)
{
    struct card *card = arbiter_card(a, owner);
    if (card) {
        card->expired = true;
        card->silent = true;
        a->any_expired = true;
    }
}

static void carry_out(struct arbiter *a, const struct shard_effects *effects)
{
    for (size_t i = 0; i < effects->count;) {
        const struct shard_effect *effect = &effects->list[i];
        if (effect->kind == SHARD_GRANTED) {
            i = send_granted(a, effects, i);
            continue;
        }
        if (effect->kind == SHARD_WAIT) {
            send_grant(a, effect->owner, NULL, 0, true);
        } else if (effect->kind == SHARD_END) {
            ask_again(a, effect->owner);
        } else if (effect->kind == SHARD_EXPIRED) {
            note_expired(a, effect->owner);
        }
        i++;
    }
}

static void go_on(struct arbiter *a, struct shard_effects *effects)
{
    const struct shard_event event = {.kind = SHARD_GO_ON};
    carry_out(a, effects);
    while (effects->more && !a->failed) {
        int r = shard_step(a->ledger.shard, &event, effects);
        if (r < 0) {
            arbiter_fail(a, ledger_fail(r, a->err));
            return;
        }
        carry_out(a, effects);
    }
}

static void tell(struct arbiter *a, struct shard_event event)
{
    struct shard_effects effects;
    if (a->failed) {
        return;
    }
    int r = shard_step(a->ledger.shard, &event, &effects);
    if (r < 0) {
        arbiter_fail(a, ledger_fail(r, a->err));
        return;
    }
    go_on(a, &effects);
}

void arbiter_records_commit(struct arbiter *a, const struct wire_message *commits)
{
    struct shard_effects effects;
    for (uint32_t i = 0; i < commits->commits.steps.count && !a->failed; i++) {
        const struct wire_step *step = &commits->commits.steps.list[i];
        int r = arbiter_anchor_check(a, step, a->err);
        arbiter_fail(a, r < 0 ? r : ledger_commit(&a->ledger, step, &effects, a->err));
        if (!a->failed) {
            go_on(a, &effects);
            arbiter_blame_clear(a, &step->ranges);
        }
    }
}

/* ---- Members ---- */

/* Adds the members as owners. A member that is an owner already is refused, which changes
 * nothing. */
void arbiter_records_join(struct arbiter *a)
{
    for (uint32_t i = 0; i < a->rendezvous->room; i++) {
        const struct rendezvous_peer *peer = &a->rendezvous->peers[i];
        if (peer->standing == RENDEZVOUS_MEMBER && !peer->gone) {
            tell(a, (struct shard_event){.kind = SHARD_JOIN,
                                         .owner = peer->incarnation,
                                         .expires_ms = a->now_ms + a->lease_ms});
        }
    }
}

void arbiter_records_renew(struct arbiter *a, uint64_t owner)
{
    tell(a, (struct shard_event){
                .kind = SHARD_RENEW, .owner = owner, .expires_ms = a->now_ms + a->lease_ms});
}

void arbiter_records_return(struct arbiter *a, uint64_t owner)
{
    tell(a, (struct shard_event){.kind = SHARD_GONE, .owner = owner});
}

void arbiter_records_tick(struct arbiter *a)
{
    tell(a, (struct shard_event){.kind = SHARD_TICK, .now_ms = a->now_ms});
}

/* ---- Leases ---- */

void arbiter_records_take(struct arbiter *a, uint64_t owner, const struct wire_ranges *leases)
{
    for (uint32_t i = 0; i < leases->count && !a->failed; i++) {
        struct shard_part part = {owner, leases->list[i]};
        tell(a, (struct shard_event){.kind = SHARD_HELD, .parts = &part, .part_count = 1});
    }
}

void arbiter_records_resend(struct arbiter *a, uint64_t owner)
{
    muster_auto(free) struct shard_range *ranges = calloc(RANGES_OF_A_FRAME, sizeof *ranges);
    if (!ranges) {
        arbiter_fail(a, err_no_memory(a->err));
        return;
    }
    const struct shard_range *last = NULL;
    struct shard_range range;
    uint32_t count = 0;
    while (shard_held_next(a->ledger.shard, owner, last, &range)) {
        ranges[count++] = range;
        last = &range;
        if (count == RANGES_OF_A_FRAME) {
            send_grant(a, owner, ranges, count, false);
            count = 0;
        }
    }
    if (count > 0) {
        send_grant(a, owner, ranges, count, false);
    }
}

/* ---- Asking ---- */

static bool next_dataset(const struct arbiter *a, uint32_t *ret)
{
    struct shard_progress progress;
    for (uint32_t i = 0; shard_progress(a->ledger.shard, i, &progress); i++) {
        if (progress.dataset.task == SHARD_TRAIN && progress.dataset.micro_batches == 0 &&
            progress.epoch < progress.dataset.epochs) {
            *ret = i;
            return true;
        }
    }
    return false;
}

static bool grants_now(const struct arbiter *a)
{
    return a->serving && a->rendezvous->granting && a->rendezvous->phase == RENDEZVOUS_RUNNING;
}

static void want(struct arbiter *a, struct card *card)
{
    uint32_t dataset;
    card->waits = card->asked;
    card->asked = 0;
    if (!next_dataset(a, &dataset)) {
        send_grant(a, card->incarnation, NULL, 0, true);
        return;
    }
    tell(a, (struct shard_event){.kind = SHARD_WANT,
                                 .owner = card->incarnation,
                                 .dataset = dataset,
                                 .count = card->waits});
}

void arbiter_records_ask(struct arbiter *a, struct card *card, uint64_t records)
{
    card->asked = records;
    a->any_asked = true;
}

void arbiter_records_serve(struct arbiter *a)
{
    if (a->rendezvous->granting && !a->serving) {
        a->serving = true;
        tell(a, (struct shard_event){.kind = SHARD_SERVE});
    }
    if (!a->any_asked || !grants_now(a)) {
        return;
    }
    a->any_asked = false;
    for (uint32_t i = 0; i < a->rendezvous->room && !a->failed; i++) {
        const struct rendezvous_peer *peer = &a->rendezvous->peers[i];
        struct card *card = &a->cards[i];
        bool member = peer->standing == RENDEZVOUS_MEMBER && peer->connected && !peer->leaving;
        if (card->asked > 0 && card->incarnation == peer->incarnation && member) {
            want(a, card);
        }
    }
}
