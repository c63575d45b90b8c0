/* The events of processes: they join, leave, die, report, commit. See member.h. */
#include "rendezvous/member.h"

#include "commit/planted.h"
#include "rendezvous/choice.h"
#include "rendezvous/journal.h"
#include "rendezvous/round.h"

/* ---- Processes come and go ---- */

/* Rule 9: grants begin once every member has reported its leases. */
static void count_leases(struct rendezvous *s, struct rendezvous_peer *peer)
{
    bool all = true;
    peer->counted = true;
    for (uint32_t i = 0; i < s->room; i++) {
        all = all && (s->peers[i].standing != RENDEZVOUS_MEMBER || s->peers[i].counted);
    }
    s->granting = s->granting || all;
}

/* Sends OPEN to a member of the generation that does not know of it, because OPEN was lost with a
 * connection or a coordinator. */
static void open_again(struct turn *t, const struct rendezvous_peer *peer)
{
    round_send_open(t, peer);
    if (t->s->phase == RENDEZVOUS_CLOSING) {
        round_send_close(t, peer);
    }
}

static void resend_grants(struct turn *t, const struct rendezvous_peer *peer)
{
    turn_send(t, peer, (struct rendezvous_effect){.kind = RENDEZVOUS_RESEND_GRANTS});
}

static void join_as_member(struct turn *t, struct rendezvous_peer *peer)
{
    peer->connected = true;
    peer->parted = false;
    open_again(t, peer);
    if (peer->counted) {
        resend_grants(t, peer);
    } else {
        count_leases(t->s, peer);
    }
}

void member_join(struct turn *t)
{
    struct rendezvous *s = t->s;
    struct rendezvous_peer *peer = turn_find(s, t->event->incarnation);
    if (peer && peer->gone) {
        turn_expel(t, peer->incarnation, RENDEZVOUS_UNKNOWN);
        return;
    }
    if (peer && peer->standing == RENDEZVOUS_MEMBER) {
        join_as_member(t, peer);
        return;
    }
    if (!peer) {
        peer = turn_take(s, t->event->incarnation, RENDEZVOUS_JOINING);
        if (!peer) {
            turn_expel(t, t->event->incarnation, RENDEZVOUS_FULL);
            return;
        }
        peer->age = ++s->last_age;
    }
    peer->connected = true;
    peer->parted = false;
    round_close_if_wanted(t);
    round_decide(t);
}

/* A member will not continue: it loses its connection and its part in the generation. */
static void lose(struct turn *t, struct rendezvous_peer *peer)
{
    peer->gone = true;
    peer->connected = false;
    round_close(t, true);
    round_decide(t);
}

/* A joiner may already be in a generation that is being recorded. */
static void forget_joiner(struct rendezvous *s, struct rendezvous_peer *peer)
{
    if (peer->next) {
        peer->gone = true;
        peer->connected = false;
    } else {
        turn_free(s, peer);
    }
}

void member_dead(struct turn *t)
{
    struct rendezvous_peer *peer = turn_find(t->s, t->event->incarnation);
    if (!peer) {
        return;
    }
    if (peer->standing == RENDEZVOUS_MEMBER) {
        lose(t, peer);
    } else {
        forget_joiner(t->s, peer);
    }
}

static bool any_member_lives(const struct rendezvous *s)
{
    for (uint32_t i = 0; i < s->room; i++) {
        if (s->peers[i].standing == RENDEZVOUS_MEMBER && !s->peers[i].gone) {
            return true;
        }
    }
    return false;
}

/* A member has finished. The others are about to finish, too, so that no generation is closed
 * because of this one. A process that was left out before has finished as well. */
static void finish(struct turn *t, struct rendezvous_peer *peer)
{
    t->s->finished = true;
    if (peer) {
        peer->gone = true;
        peer->finished = true;
        peer->connected = false;
    }
    if (!any_member_lives(t->s)) {
        round_close(t, true);
    }
    round_decide(t);
}

void member_leave(struct turn *t)
{
    struct rendezvous_peer *peer = turn_find(t->s, t->event->incarnation);
    if (peer && peer->standing == RENDEZVOUS_JOINING && !peer->next) {
        turn_expel(t, peer->incarnation, RENDEZVOUS_LEFT);
        turn_free(t->s, peer);
    } else if (t->event->finished && t->s->complete) {
        finish(t, peer);
    } else if (peer) {
        peer->leaving = true;
        round_close_if_wanted(t);
        round_decide(t);
    }
}

/* A living process does not normally close both its connections; if it does, it comes back too
 * late, like a member that was silent. This is not a proof of its death: if no other member has the
 * state, the job waits for it. */
static void note_ended(struct turn *t, struct rendezvous_peer *peer)
{
    if (t->s->phase == RENDEZVOUS_CLOSING && peer->ended && peer->parted && !peer->reported) {
        peer->silent = true;
        round_decide(t);
    }
}

void member_disconnected(struct turn *t)
{
    struct rendezvous_peer *peer = turn_find(t->s, t->event->incarnation);
    if (peer) {
        peer->connected = false;
        peer->parted = true;
        note_ended(t, peer);
    }
}

void member_connected(struct turn *t)
{
    struct rendezvous_peer *peer = turn_find(t->s, t->event->incarnation);
    if (peer) {
        peer->connected = false; /* until it reports */
        peer->parted = false;
    }
}

/* ---- What members report ---- */

static void break_off(struct turn *t, struct rendezvous_peer *peer, enum rendezvous_reason reason)
{
    turn_expel(t, peer->incarnation, reason);
    lose(t, peer);
}

/* Steps count while their generation is open or closing. A member whose steps do not follow the log
 * contradicts it. */
static bool add_steps(struct turn *t, struct rendezvous_peer *peer)
{
    const struct rendezvous *s = t->s;
    bool heard = s->phase == RENDEZVOUS_RUNNING || s->phase == RENDEZVOUS_CLOSING;
    if (heard && !rendezvous_journal_add_steps(t, t->event->first, t->event->version)) {
        break_off(t, peer, RENDEZVOUS_BROKEN);
        return false;
    }
    return true;
}

static void note_leases(struct turn *t, struct rendezvous_peer *peer, bool came_back)
{
    bool former = t->event->generation < t->s->generation;
    if (!peer->counted || PLANTED(REPORT_REPLACES_LEASES)) {
        if (!(former && t->s->restored)) { /* rule 11: leases from before are void */
            turn_emit(t, (struct rendezvous_effect){.kind = RENDEZVOUS_TAKE_LEASES,
                                                    .to = peer->incarnation});
        }
        count_leases(t->s, peer);
    } else if (came_back) {
        resend_grants(t, peer);
    }
}

static void note_closed(struct turn *t, struct rendezvous_peer *peer)
{
    const struct rendezvous_event *report = t->event;
    peer->reported = true;
    peer->silent = false;
    peer->version = report->version;
    peer->loaded = report->loaded;
    peer->prepared = report->prepared;
    if (report->prepared && report->version == t->s->logged) {
        turn_emit(t, (struct rendezvous_effect){.kind = RENDEZVOUS_KEEP_PREPARED});
    }
    choice_suspect(t->s, report->incarnation, report->lost);
    round_close(t, true);
    struct rendezvous_peer *lost = report->ended ? turn_find(t->s, report->lost) : NULL;
    if (lost && lost->standing == RENDEZVOUS_MEMBER) {
        lost->ended = true;
        note_ended(t, lost);
    }
}

static void report_of_this_generation(struct turn *t, struct rendezvous_peer *peer, bool came_back)
{
    struct rendezvous *s = t->s;
    if (!add_steps(t, peer)) {
        return;
    }
    note_leases(t, peer, came_back);
    if (came_back) { /* messages that were sent to it may be lost with its connection */
        turn_send(t, peer,
                  (struct rendezvous_effect){.kind = RENDEZVOUS_ACK, .version = s->durable});
    }
    bool heard = s->phase == RENDEZVOUS_RUNNING || s->phase == RENDEZVOUS_CLOSING;
    if (heard && t->event->closed) {
        note_closed(t, peer);
    } else if (s->phase == RENDEZVOUS_CLOSING) {
        round_send_close(t, peer);
    }
    round_close_if_wanted(t);
    round_decide(t);
}

void member_report(struct turn *t)
{
    struct rendezvous *s = t->s;
    struct rendezvous_peer *peer = turn_find(s, t->event->incarnation);
    if (!peer || peer->standing != RENDEZVOUS_MEMBER || peer->gone) {
        turn_expel(t, t->event->incarnation, RENDEZVOUS_UNKNOWN);
        return;
    }
    bool came_back = !peer->connected;
    peer->connected = true;
    peer->parted = false;
    if (t->event->generation > s->generation) {
        break_off(t, peer, RENDEZVOUS_AHEAD);
    } else if (t->event->generation < s->generation) {
        open_again(t, peer);
        note_leases(t, peer, came_back);
    } else {
        report_of_this_generation(t, peer, came_back);
    }
}

/* Commits of a member that is gone are ignored, like its reports. */
void member_commits(struct turn *t)
{
    struct rendezvous_peer *peer = turn_find(t->s, t->event->incarnation);
    bool heard = peer && peer->standing == RENDEZVOUS_MEMBER && !peer->gone;
    if (heard && t->event->generation == t->s->generation && add_steps(t, peer)) {
        rendezvous_journal_acknowledge(t, peer, t->event->version);
        round_close_if_wanted(t);
        round_decide(t);
    }
}

/* Nothing is written to the journal for a state that was just restored. */
void member_checkpoint(struct turn *t)
{
    struct rendezvous *s = t->s;
    const struct rendezvous_peer *peer = turn_find(s, t->event->incarnation);
    bool heard = peer && peer->standing == RENDEZVOUS_MEMBER && !peer->gone &&
                 t->event->generation == s->generation && s->phase != RENDEZVOUS_RECORDING;
    if (heard && t->event->version <= s->checkpoint) {
        rendezvous_journal_tell_checkpoints(t, peer);
    } else if (heard && !(s->restored && t->event->version <= s->base)) {
        rendezvous_journal_add_checkpoint(t, t->event->version);
    }
}

/* A member cannot read the checkpoint that the open generation began with. The coordinator believes
 * this only while no step has been committed since: such a step proves that some member has read
 * the checkpoint. */
void member_unreadable(struct turn *t)
{
    struct rendezvous *s = t->s;
    const struct rendezvous_peer *peer = turn_find(s, t->event->incarnation);
    bool heard = peer && peer->standing == RENDEZVOUS_MEMBER && !peer->gone &&
                 t->event->generation == s->generation && s->phase != RENDEZVOUS_RECORDING;
    bool meant = s->restored && s->logged == s->base && t->event->version == s->base &&
                 s->checkpoint == s->base && s->base > 0;
    if (!heard || !meant || s->unreadable) {
        return;
    }
    if (s->older_count == 0) {
        turn_emit(t, (struct rendezvous_effect){.kind = RENDEZVOUS_LOST_STATE});
        return;
    }
    s->unreadable = true;
    round_close(t, true);
    round_decide(t);
}
