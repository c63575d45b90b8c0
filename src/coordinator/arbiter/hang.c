/* Finds workers whose step function does not return while others wait for them. Their heartbeats
 * and answers go on, so that they do not look dead: only the time of their pass shows it. See
 * internal.h. */
#include "coordinator/arbiter/internal.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    LEAST_MS = 10000,
    FIRST_MS = 120000, /* for a size that is new to the process: it compiles, and fills caches */
    MEDIANS = 20,
    IDLE_MS = 5000, /* a member that has had nothing at hand for this time waits: passes are
                       reported within 2 s */
    LOOK_MS = 1000,
    TEXT_BYTES = 256,
};

/* ---- How long passes take ---- */

void arbiter_hang_note(struct arbiter *a, struct card *card, struct shard_range at_hand)
{
    struct hangs *h = &a->hangs;
    bool ends = card->at_hand.count > 0;
    if (ends) {
        h->passes[h->pass_count++ % ARBITER_PASSES_KEPT] = a->now_ms - card->since_ms;
        uint32_t count = card->at_hand.count;
        card->least = card->passes == 0 || count < card->least ? count : card->least;
        card->most = count > card->most ? count : card->most;
        card->passes++;
    }
    card->since_ms = a->now_ms;
    if (at_hand.count > 0 && h->look_ms == INT64_MAX) {
        h->look_ms = a->now_ms + LOOK_MS;
    }
}

static int compare(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

static int64_t median_ms(const struct hangs *h)
{
    int64_t sorted[ARBITER_PASSES_KEPT];
    size_t count = h->pass_count < ARBITER_PASSES_KEPT ? h->pass_count : ARBITER_PASSES_KEPT;
    for (size_t i = 0; i < count; i++) {
        sorted[i] = h->passes[i];
    }
    qsort(sorted, count, sizeof *sorted, compare);
    return count > 0 ? sorted[count / 2] : 0;
}

static int64_t limit_ms(const struct arbiter *a, const struct card *card)
{
    bool met = card->at_hand.count >= card->least && card->at_hand.count <= card->most;
    int64_t least = met ? LEAST_MS : FIRST_MS, usual = MEDIANS * median_ms(&a->hangs);
    int64_t limit = usual > least ? usual : least;
    if (a->hangs.limit_ms > 0) {
        return a->hangs.limit_ms;
    }
    return a->hangs.max_ms > 0 && a->hangs.max_ms < limit ? a->hangs.max_ms : limit;
}

/* ---- Which members wait ---- */

static bool is_member(const struct arbiter *a, uint32_t i)
{
    const struct rendezvous_peer *peer = &a->rendezvous->peers[i];
    return peer->standing == RENDEZVOUS_MEMBER && peer->connected && !peer->gone &&
           a->cards[i].incarnation == peer->incarnation;
}

static bool anyone_waits(const struct arbiter *a)
{
    for (uint32_t i = 0; i < a->rendezvous->room; i++) {
        const struct card *card = &a->cards[i];
        if (is_member(a, i) && card->at_hand.count == 0 && a->now_ms - card->since_ms >= IDLE_MS) {
            return true;
        }
    }
    return false;
}

/* ---- The end of a member that hangs ---- */

static void expel(struct arbiter *a, struct card *card, int64_t ms)
{
    struct shard_range range = card->at_hand;
    char why[TEXT_BYTES];
    int count = snprintf(why, sizeof why,
                         "its step function has not come back for %lld s, while others waited: %u "
                         "records from position %llu of epoch %u",
                         (long long)(ms / 1000), range.count, (unsigned long long)range.first,
                         range.epoch + 1);
    struct wire_message message = {.kind = WIRE_EXPELLED,
                                   .expelled = {.incarnation = card->incarnation,
                                                .reason = RENDEZVOUS_HANGS,
                                                .why = {why, (uint32_t)count}}};
    const struct arbiter_effect said = {.kind = ARBITER_HANGS,
                                        .to = card->incarnation,
                                        .offset = a->out->bytes.used,
                                        .count = (size_t)count};
    buf_add(&a->out->bytes, why, (size_t)count);
    arbiter_fail(a, arbiter_effects_add(a->out, said, a->err));
    arbiter_send(a, card->incarnation, &message);
    arbiter_blame_dead(a, card->incarnation, ARBITER_CAUSE_OWN);
}

uint64_t arbiter_hang_look(struct arbiter *a)
{
    struct hangs *h = &a->hangs;
    bool any = false;
    if (a->now_ms < h->look_ms || a->over) {
        return 0;
    }
    for (uint32_t i = 0; i < a->rendezvous->room; i++) {
        struct card *card = &a->cards[i];
        bool computes = is_member(a, i) && card->at_hand.count > 0;
        int64_t ms = a->now_ms - card->since_ms;
        if (computes && h->limit_ms >= 0 && ms >= limit_ms(a, card) && anyone_waits(a)) {
            expel(a, card, ms);
            return card->incarnation;
        }
        any = any || computes;
    }
    h->look_ms = any ? a->now_ms + LOOK_MS : INT64_MAX;
    return 0;
}
