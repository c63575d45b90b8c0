/* Handles the messages of workers: each goes to rendezvous, the leases or the records.
 *
 * Layer: program (coordinator); pure. See arbiter.h.
 */
#include "coordinator/arbiter/internal.h"
#include "coordinator/arbiter/replay.h"

#include <string.h>

static void note_join(struct arbiter *a, const struct arbiter_event *event)
{
    const struct rendezvous_peer *peer = rendezvous_find(a->rendezvous, event->incarnation);
    if (peer) {
        struct card *card = &a->cards[peer - a->rendezvous->peers];
        if (card->incarnation != event->incarnation) {
            *card = (struct card){.incarnation = event->incarnation};
        }
        card->address = event->message->join.address;
        card->environment = event->message->join.environment;
        arbiter_clean_name(&event->message->join.name, card->name);
    }
}

/* Whether equal bits are required, and the joiner computes other bits than a member of this
 * coordinator or an earlier one, or than another joiner. */
static bool computes_other_bits(const struct arbiter *a, const struct wire_join *join)
{
    uint64_t ours = join->environment;
    bool differs = ours != 0 && a->environment != 0 && a->environment != ours;
    for (uint32_t i = 0; i < a->rendezvous->room && ours != 0; i++) {
        const struct rendezvous_peer *peer = &a->rendezvous->peers[i];
        bool here = peer->standing == RENDEZVOUS_MEMBER || peer->standing == RENDEZVOUS_JOINING;
        uint64_t theirs = a->cards[i].environment;
        differs = differs || (here && a->cards[i].incarnation == peer->incarnation && theirs != 0 &&
                              theirs != ours);
    }
    return differs;
}

static void hear_join(struct arbiter *a, const struct arbiter_event *event)
{
    if (computes_other_bits(a, &event->message->join)) {
        arbiter_refuse(a, event->incarnation,
                       "equal bits are asked for, and this worker's environment is not that of the "
                       "others: torch's version, the instruction set, the threads");
        return;
    }
    arbiter_tell(
        a, &(struct rendezvous_event){.kind = RENDEZVOUS_JOIN, .incarnation = event->incarnation});
    note_join(a, event);
}

/* Notes a checkpoint. A checkpoint that is older than all kept steps comes too late to be used. */
static void hear_checkpoint(struct arbiter *a, const struct wire_checkpoint *told)
{
    if (told->version < a->ledger.first) {
        return;
    }
    arbiter_tell(a, &(struct rendezvous_event){.kind = RENDEZVOUS_CHECKPOINT,
                                               .incarnation = a->event->incarnation,
                                               .generation = told->generation,
                                               .version = told->version});
    if (a->rendezvous->pending_checkpoint == told->version) {
        replay_keep(&a->offered, told);
    }
}

static void hear_checkpoint_failed(struct arbiter *a, const struct wire_checkpoint_failed *told)
{
    if (told->reading) {
        arbiter_tell(a, &(struct rendezvous_event){.kind = RENDEZVOUS_UNREADABLE,
                                                   .incarnation = a->event->incarnation,
                                                   .generation = told->generation,
                                                   .version = told->version});
    }
}

/* Shortens the deadline, if all wait for a process that was silent to another worker for as long as
 * members may be silent: the coordinator asks it by CLOSE, and an answer would come at once. */
static void hasten(struct arbiter *a, uint64_t lost)
{
    const struct rendezvous *s = a->rendezvous;
    struct card *missed = arbiter_card(a, lost);
    if (missed) {
        missed->missed = s->generation;
    }
    if (a->deadline_ms == INT64_MAX || a->deadline_generation != s->generation) {
        return;
    }
    for (uint32_t i = 0; i < s->room; i++) {
        const struct rendezvous_peer *peer = &s->peers[i];
        bool late = peer->standing == RENDEZVOUS_MEMBER && !peer->reported && !peer->gone;
        if (late && a->cards[i].missed != s->generation) {
            return;
        }
    }
    int64_t soon_ms = a->now_ms + ARBITER_MISSED_MS;
    a->deadline_ms = soon_ms < a->deadline_ms ? soon_ms : a->deadline_ms;
}

static void hear_report(struct arbiter *a, const struct wire_report *report)
{
    uint64_t first = report->steps.count > 0 ? report->steps.list[0].version : report->version + 1;
    arbiter_tell(a, &(struct rendezvous_event){.kind = RENDEZVOUS_REPORT,
                                               .incarnation = a->event->incarnation,
                                               .generation = report->generation,
                                               .version = report->version,
                                               .first = first,
                                               .lost = report->lost,
                                               .ended = report->ended,
                                               .closed = report->closed,
                                               .loaded = report->loaded,
                                               .prepared = report->prepared.count > 0});
    if (report->closed && report->generation == a->rendezvous->generation) {
        hasten(a, report->lost);
    }
}

static void hear_leave(struct arbiter *a, struct card *card, const struct wire_leave *leave)
{
    if (card) {
        card->broken_off = leave->broken_off;
    }
    arbiter_tell(a, &(struct rendezvous_event){.kind = RENDEZVOUS_LEAVE,
                                               .incarnation = a->event->incarnation,
                                               .finished = leave->finished});
}

static void hear_commits(struct arbiter *a, const struct wire_commits *commits)
{
    const struct wire_steps *steps = &commits->steps;
    arbiter_tell(a, &(struct rendezvous_event){.kind = RENDEZVOUS_COMMITS,
                                               .incarnation = a->event->incarnation,
                                               .generation = commits->generation,
                                               .first = steps->list[0].version,
                                               .version = steps->list[steps->count - 1].version});
}

static void hear_failure(struct arbiter *a, const struct wire_text *why)
{
    char text[WIRE_TEXT_MAX + 1] = "";
    memcpy(text, why->bytes, why->count);
    arbiter_fail_job(a, why->count > 0 ? text : "a worker says so");
}

void arbiter_hear(struct arbiter *a)
{
    if (arbiter_has_failed(a)) {
        arbiter_expel_failed(a, a->event->incarnation);
        return;
    }
    if (leases_hear(a)) {
        return;
    }
    const struct wire_message *m = a->event->message;
    struct card *card = arbiter_card(a, a->event->incarnation);
    arbiter_records_renew(a, a->event->incarnation);
    if (card) {
        card->away = false;
    }
    switch ((int)m->kind) {
    case WIRE_JOIN: hear_join(a, a->event); break;
    case WIRE_LEAVE: hear_leave(a, card, &m->leave); break;
    case WIRE_REPORT: hear_report(a, &m->report); break;
    case WIRE_COMMITS: hear_commits(a, &m->commits); break;
    case WIRE_CHECKPOINT: hear_checkpoint(a, &m->checkpoint); break;
    case WIRE_CHECKPOINT_FAILED: hear_checkpoint_failed(a, &m->checkpoint_failed); break;
    case WIRE_DATASET: arbiter_datasets_hear(a, &m->dataset); break;
    case WIRE_PASS: arbiter_blame_hear(a, card, &m->pass); break;
    case WIRE_FAIL: hear_failure(a, &m->fail.why); break;
    case WIRE_ASK:
        if (card && m->ask.records > 0) {
            arbiter_records_ask(a, card, m->ask.records);
        }
        break;
    default:
        break; /* PROGRESS has renewed the leases, HEALED and SILENT are for people; the server does
                  not let the others pass */
    }
}
