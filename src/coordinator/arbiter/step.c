/* arbiter_step: gives each event to rendezvous or the records, and their effects to the journal
 * and the members. See arbiter.h. */
#include "coordinator/arbiter/arbiter.h"

#include "coordinator/arbiter/internal.h"
#include "coordinator/arbiter/replay.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

/* ---- Telling rendezvous ---- */

void arbiter_tell(struct arbiter *a, const struct rendezvous_event *event)
{
    if (a->failed) {
        return;
    }
    rendezvous_step(a->rendezvous, event, &a->asked);
    a->open_written = false;
    for (size_t i = 0; i < a->asked.count && !a->failed; i++) {
        arbiter_carry_out(a, &a->asked.list[i]);
    }
    if (a->rendezvous->phase != RENDEZVOUS_CLOSING) {
        a->deadline_ms = INT64_MAX;
    }
}

static void give_up_expired(struct arbiter *a)
{
    if (!a->any_expired) {
        return;
    }
    a->any_expired = false;
    for (uint32_t i = 0; i < a->rendezvous->room; i++) {
        struct card *card = &a->cards[i];
        if (card->expired && card->incarnation == a->rendezvous->peers[i].incarnation) {
            bool ended = a->rendezvous->complete;
            arbiter_tell(
                a, &(struct rendezvous_event){.kind = ended ? RENDEZVOUS_LEAVE : RENDEZVOUS_DEAD,
                                              .incarnation = card->incarnation,
                                              .finished = ended});
        }
        card->expired = false;
    }
}

static void note_complete(struct arbiter *a)
{
    if (a->rendezvous->phase != RENDEZVOUS_READING && !a->rendezvous->complete &&
        ledger_is_full(&a->ledger)) {
        arbiter_tell(a, &(struct rendezvous_event){.kind = RENDEZVOUS_COMPLETE});
    }
}

/* Opens the generation again, if a death was explained only after it was opened: its members
 * compute suspected or set-aside records as if nothing were wrong with them. */
static void tell_of_blames(struct arbiter *a)
{
    if (a->rendezvous->phase == RENDEZVOUS_RUNNING && a->blames_told != a->blames) {
        arbiter_tell(a, &(struct rendezvous_event){.kind = RENDEZVOUS_REOPEN});
    }
}

/* Ends a job without training when its leases have ended. */
static void note_over(struct arbiter *a)
{
    struct shard_progress data;
    bool trains = a->rendezvous->generation > 0 || shard_progress(a->ledger.shard, 0, &data);
    if (!a->failed && !a->over && (a->trained || !trains) && !leases_are_unused(&a->leases) &&
        leases_are_over(&a->leases)) {
        arbiter_end(a);
    }
}

/* Whether the last members of a generation have broken off, and no process waits to continue. If a
 * process was killed, another one may come and train the rest. */
static bool all_have_broken_off(const struct arbiter *a)
{
    bool any = false;
    for (uint32_t i = 0; i < a->rendezvous->room; i++) {
        const struct rendezvous_peer *peer = &a->rendezvous->peers[i];
        const struct card *card = &a->cards[i];
        bool ended = peer->standing == RENDEZVOUS_MEMBER && peer->gone &&
                     card->incarnation == peer->incarnation && card->broken_off;
        if (peer->standing != RENDEZVOUS_FREE && !ended) {
            return false;
        }
        any = any || ended;
    }
    return any && !a->rendezvous->complete;
}

static void note_broken_off(struct arbiter *a)
{
    if (all_have_broken_off(a)) {
        struct arbiter_figures figures;
        char text[ARBITER_WHY_BYTES];
        arbiter_figures(a, &figures);
        (void)snprintf(text, sizeof text,
                       "all workers have ended their loops by themselves, and %" PRIu64
                       " of %" PRIu64
                       " records are not trained: to train less, ask for fewer epochs",
                       figures.records - figures.records_done, figures.records);
        arbiter_fail_job(a, text);
    }
}

/* Does what follows from the event in addition to the effects of rendezvous. */
static void settle(struct arbiter *a)
{
    bool again = true;
    while (again && !a->failed && !a->over) {
        uint64_t generation = a->rendezvous->generation;
        if (a->told_generation != generation) {
            a->told_generation = generation;
            arbiter_add(a, ARBITER_OPENED);
            arbiter_records_join(a);
        }
        arbiter_records_serve(a);
        give_up_expired(a);
        note_complete(a);
        tell_of_blames(a);
        again = a->any_expired || a->rendezvous->generation != generation;
    }
    if (!a->failed && !a->over) {
        note_broken_off(a);
    }
    if (!a->failed && !a->over) {
        leases_settle(a);
        note_over(a);
    }
}

/* ---- Events ---- */

static void start(struct arbiter *a)
{
    if (arbiter_has_failed(a)) {
        arbiter_announce_failure(a);
        return;
    }
    if (a->over) {
        arbiter_add(a, ARBITER_END);
        return;
    }
    arbiter_datasets_declare(a);
    arbiter_tell(a, &(struct rendezvous_event){.kind = RENDEZVOUS_START, .term = a->least_term});
    arbiter_records_tick(a);
    arbiter_records_join(a);
    leases_start(a);
    a->told_generation = a->rendezvous->generation;
    if (a->rendezvous->generation == 0) {
        arbiter_await_reports(a, 0, a->first_ms);
    }
}

/* Notes that a connection has begun or ended. A joiner that is gone comes back as a new one, or not
 * at all. */
static void note_connection(struct arbiter *a, bool is_new)
{
    const struct rendezvous_peer *peer = rendezvous_find(a->rendezvous, a->event->incarnation);
    struct card *card = arbiter_card(a, a->event->incarnation);
    bool joins = peer && peer->standing == RENDEZVOUS_JOINING;
    leases_note_connection(a, a->event->incarnation, is_new);
    if (card) {
        card->asked = 0;
        card->away = !is_new;
        card->watched = a->event->cause == ARBITER_CAUSE_PENDING;
        card->at_hand.count = is_new ? 0 : card->at_hand.count; /* it reports again what it has */
    }
    arbiter_tell(a, &(struct rendezvous_event){.kind = joins    ? RENDEZVOUS_DEAD
                                                       : is_new ? RENDEZVOUS_CONNECTED
                                                                : RENDEZVOUS_DISCONNECTED,
                                               .incarnation = a->event->incarnation});
}

/* A member has died. Its last messages may be lost, but not a message that it ended well. */
static void bury(struct arbiter *a)
{
    const struct rendezvous_peer *peer = rendezvous_find(a->rendezvous, a->event->incarnation);
    bool well = a->event->cause == ARBITER_CAUSE_ENDED && a->rendezvous->complete;
    if (peer && !peer->gone) {
        arbiter_blame_dead(a, a->event->incarnation, a->event->cause);
        arbiter_tell(a,
                     &(struct rendezvous_event){.kind = well ? RENDEZVOUS_LEAVE : RENDEZVOUS_DEAD,
                                                .incarnation = a->event->incarnation,
                                                .finished = well});
    }
}

/* Handles a death. Once the log is complete, a member that has died may have ended well, and
 * without it the job would go back to a checkpoint: so the decision waits for its cause. */
static void dead(struct arbiter *a)
{
    if (leases_bury(a, a->event->incarnation, a->event->cause)) {
        return;
    }
    bool pending = a->event->cause == ARBITER_CAUSE_PENDING;
    if (!pending) { /* of a member that was left out before */
        arbiter_blame_settle(a, a->event->incarnation, a->event->cause);
    }
    if (!(pending && a->rendezvous->complete)) {
        bury(a);
    }
}

/* A process has ended at an unknown time; this may have been a good end. */
static void gone(struct arbiter *a)
{
    struct card *card = arbiter_card(a, a->event->incarnation);
    if (!leases_bury_gone(a, a->event->incarnation) && card) {
        card->expired = true;
        a->any_expired = true;
    }
}

static void tick(struct arbiter *a)
{
    uint64_t hangs = arbiter_hang_look(a);
    arbiter_records_tick(a);
    leases_tick(a);
    if (hangs != 0) {
        arbiter_tell(a, &(struct rendezvous_event){.kind = RENDEZVOUS_DEAD, .incarnation = hangs});
    }
    if (a->now_ms >= a->deadline_ms) {
        a->deadline_ms = INT64_MAX;
        arbiter_tell(a, &(struct rendezvous_event){.kind = RENDEZVOUS_DEADLINE,
                                                   .generation = a->deadline_generation});
    }
}

/* SYNC may have been requested by rendezvous, by the leases, or by both. */
static void durable(struct arbiter *a)
{
    leases_durable(a);
    if (a->rendezvous->syncing) {
        arbiter_tell(a, &(struct rendezvous_event){.kind = RENDEZVOUS_DURABLE});
    }
}

static void settle_cause(struct arbiter *a)
{
    arbiter_blame_settle(a, a->event->incarnation, a->event->cause);
    leases_settle_death(a, a->event->incarnation, a->event->cause);
    bury(a); /* a member for which dead() has waited */
}

static void take(struct arbiter *a)
{
    switch (a->event->kind) {
    case ARBITER_REPLAY: replay(a, a->event); break;
    case ARBITER_START: start(a); break;
    case ARBITER_MESSAGE: arbiter_hear(a); break;
    case ARBITER_DISCONNECTED: note_connection(a, false); break;
    case ARBITER_CONNECTED: note_connection(a, true); break;
    case ARBITER_DEAD: dead(a); break;
    case ARBITER_CAUSE: settle_cause(a); break;
    case ARBITER_GONE: gone(a); break;
    case ARBITER_DURABLE: durable(a); break;
    case ARBITER_TICK: tick(a); break;
    }
}

int arbiter_step(struct arbiter *a, const struct arbiter_event *event, struct arbiter_effects *ret,
                 struct muster_err *err)
{
    assert(!a->failed);
    arbiter_effects_clear(ret);
    a->now_ms = event->now_ms;
    a->event = event;
    a->out = ret;
    a->err = err;
    take(a);
    if (event->kind != ARBITER_REPLAY) {
        settle(a);
    }
    arbiter_send_grants(a);
    return a->failed;
}
