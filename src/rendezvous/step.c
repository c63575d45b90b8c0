/* rendezvous_step: the coordinator's table, and what each event does. See rendezvous.h. */
#include "rendezvous/rendezvous.h"

#include "commit/planted.h"
#include "rendezvous/journal.h"
#include "rendezvous/round.h"
#include "rendezvous/turn.h"

#include <assert.h>
#include <string.h>

/* ---- The journal is read ---- */

static void replay_term(struct turn *t)
{
    t->s->term = t->event->term;
}

static void replay_generation(struct turn *t)
{
    struct rendezvous *s = t->s;
    memset(s->peers, 0, s->room * sizeof *s->peers);
    s->generation = t->event->generation;
    s->lineage = t->event->lineage;
    s->base = t->event->version;
    s->logged = t->event->version;
    s->restored = t->event->restore;
    s->last_age = 0;
}

static void replay_member(struct turn *t)
{
    struct rendezvous_peer *peer = turn_take(t->s, t->event->incarnation, RENDEZVOUS_MEMBER);
    if (peer) { /* else the job was written with more room: whoever is missing is unknown here */
        peer->age = t->event->age;
        t->s->last_age = peer->age > t->s->last_age ? peer->age : t->s->last_age;
    }
}

static void replay_log(struct turn *t)
{
    t->s->logged = t->event->version;
}

static void replay_checkpoint(struct turn *t)
{
    t->s->checkpoint = t->event->version;
}

static void start(struct turn *t)
{
    struct rendezvous *s = t->s;
    s->phase = s->generation == 0 ? RENDEZVOUS_CLOSING : RENDEZVOUS_RUNNING;
    s->durable = s->logged;
    s->settled = s->generation > 0 && s->logged > s->base;
    s->granting = false;
    s->term++;
    rendezvous_journal_append(
        t, (struct rendezvous_effect){.kind = RENDEZVOUS_APPEND_TERM, .term = s->term});
}

/* ---- Processes come and go ---- */

/* Rule 9: once every member has said what it holds. */
static void count_leases(struct rendezvous *s, struct rendezvous_peer *peer)
{
    bool all = true;
    peer->counted = true;
    for (uint32_t i = 0; i < s->room; i++) {
        all = all && (s->peers[i].standing != RENDEZVOUS_MEMBER || s->peers[i].counted);
    }
    s->granting = s->granting || all;
}

/* GEN names it, but it does not know that: OPEN was lost with a connection or a coordinator. */
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
    open_again(t, peer);
    if (peer->counted) {
        resend_grants(t, peer);
    } else {
        count_leases(t->s, peer);
    }
}

static void join(struct turn *t)
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
    round_close_if_wanted(t);
    round_decide(t);
}

/* A member that will not go on: with it go its connection and its part in the generation. */
static void lose(struct turn *t, struct rendezvous_peer *peer)
{
    peer->gone = true;
    peer->connected = false;
    round_close(t, true);
    round_decide(t);
}

/* Who joins next may already be in a generation that is being recorded. */
static void forget_joiner(struct rendezvous_peer *peer)
{
    if (peer->next) {
        peer->gone = true;
        peer->connected = false;
    } else {
        turn_free(peer);
    }
}

static void dead(struct turn *t)
{
    struct rendezvous_peer *peer = turn_find(t->s, t->event->incarnation);
    if (!peer) {
        return;
    }
    if (peer->standing == RENDEZVOUS_MEMBER) {
        lose(t, peer);
    } else {
        forget_joiner(peer);
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

/* The others are about to finish, too: nothing is closed for who has. One that was left out
 * meanwhile has finished all the same. */
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

static void leave(struct turn *t)
{
    struct rendezvous_peer *peer = turn_find(t->s, t->event->incarnation);
    if (peer && peer->standing == RENDEZVOUS_JOINING && !peer->next) {
        turn_expel(t, peer->incarnation, RENDEZVOUS_LEFT);
        turn_free(peer);
    } else if (t->event->finished && t->s->complete) {
        finish(t, peer);
    } else if (peer) {
        peer->leaving = true;
        round_close_if_wanted(t);
        round_decide(t);
    }
}

static void disconnected(struct turn *t)
{
    struct rendezvous_peer *peer = turn_find(t->s, t->event->incarnation);
    if (peer) {
        peer->connected = false;
    }
}

/* ---- What members tell ---- */

static void break_off(struct turn *t, struct rendezvous_peer *peer, enum rendezvous_reason reason)
{
    turn_expel(t, peer->incarnation, reason);
    lose(t, peer);
}

/* Steps count while their generation is open or closing. Who brings none that follow the log says
 * what cannot be. */
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
    round_suspect(t->s, report->incarnation, report->lost);
    round_close(t, true);
}

static void report_of_this_generation(struct turn *t, struct rendezvous_peer *peer, bool came_back)
{
    struct rendezvous *s = t->s;
    if (!add_steps(t, peer)) {
        return;
    }
    note_leases(t, peer, came_back);
    if (came_back) { /* what it was sent may be lost with its connection */
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

static void report(struct turn *t)
{
    struct rendezvous *s = t->s;
    struct rendezvous_peer *peer = turn_find(s, t->event->incarnation);
    if (!peer || peer->standing != RENDEZVOUS_MEMBER || peer->gone) {
        turn_expel(t, t->event->incarnation, RENDEZVOUS_UNKNOWN);
        return;
    }
    bool came_back = !peer->connected;
    peer->connected = true;
    if (t->event->generation > s->generation) {
        break_off(t, peer, RENDEZVOUS_AHEAD);
    } else if (t->event->generation < s->generation) {
        open_again(t, peer);
        note_leases(t, peer, came_back);
    } else {
        report_of_this_generation(t, peer, came_back);
    }
}

/* Of who is gone nothing is heard any more, as of its reports. */
static void commits(struct turn *t)
{
    struct rendezvous_peer *peer = turn_find(t->s, t->event->incarnation);
    bool heard = peer && peer->standing == RENDEZVOUS_MEMBER && !peer->gone;
    if (heard && t->event->generation == t->s->generation && add_steps(t, peer)) {
        rendezvous_journal_acknowledge(t, peer, t->event->version);
        round_close_if_wanted(t);
        round_decide(t);
    }
}

static void checkpoint(struct turn *t)
{
    const struct rendezvous_peer *peer = turn_find(t->s, t->event->incarnation);
    if (peer && peer->standing == RENDEZVOUS_MEMBER && t->event->generation == t->s->generation &&
        t->s->phase != RENDEZVOUS_RECORDING) {
        rendezvous_journal_add_checkpoint(t, t->event->version);
    }
}

/* ---- The caller ---- */

static void deadline(struct turn *t)
{
    struct rendezvous *s = t->s;
    if (s->phase != RENDEZVOUS_CLOSING || t->event->generation != s->generation) {
        return;
    }
    if (s->generation == 0) {
        s->config.first_size = s->config.min_size;
    }
    for (uint32_t i = 0; i < s->room; i++) {
        struct rendezvous_peer *peer = &s->peers[i];
        peer->silent =
            peer->silent || (peer->standing == RENDEZVOUS_MEMBER && !peer->reported && !peer->gone);
    }
    round_decide(t);
}

static void durable(struct turn *t)
{
    struct rendezvous *s = t->s;
    if (!s->syncing) {
        return;
    }
    s->syncing = false;
    if (!s->serving) {
        s->serving = true;
        turn_emit(t, (struct rendezvous_effect){.kind = RENDEZVOUS_SERVE});
        round_decide(t); /* of deaths that were told before */
    }
    if (s->syncing_generation && s->phase == RENDEZVOUS_RECORDING) {
        s->syncing_generation = false;
        round_open(t); /* before ACK: who is left out may not end well by one */
    }
    rendezvous_journal_synced(t);
}

static void completed(struct turn *t)
{
    t->s->complete = true;
}

/* ---- The table ---- */

enum {
    READING = 1 << RENDEZVOUS_READING,
    SERVING = 1 << RENDEZVOUS_RUNNING | 1 << RENDEZVOUS_CLOSING | 1 << RENDEZVOUS_RECORDING,
};

static const struct rule {
    unsigned phases;
    void (*act)(struct turn *t);
} rules[RENDEZVOUS_EVENT_KINDS] = {
    [RENDEZVOUS_REPLAY_TERM] = {READING, replay_term},
    [RENDEZVOUS_REPLAY_GENERATION] = {READING, replay_generation},
    [RENDEZVOUS_REPLAY_MEMBER] = {READING, replay_member},
    [RENDEZVOUS_REPLAY_LOG] = {READING, replay_log},
    [RENDEZVOUS_REPLAY_CHECKPOINT] = {READING, replay_checkpoint},
    [RENDEZVOUS_START] = {READING, start},
    [RENDEZVOUS_JOIN] = {SERVING, join},
    [RENDEZVOUS_LEAVE] = {SERVING, leave},
    [RENDEZVOUS_REPORT] = {SERVING, report},
    [RENDEZVOUS_COMMITS] = {SERVING, commits},
    [RENDEZVOUS_CHECKPOINT] = {SERVING, checkpoint},
    [RENDEZVOUS_DISCONNECTED] = {SERVING, disconnected},
    [RENDEZVOUS_DEAD] = {SERVING, dead},
    [RENDEZVOUS_DEADLINE] = {SERVING, deadline},
    [RENDEZVOUS_DURABLE] = {SERVING, durable},
    [RENDEZVOUS_COMPLETE] = {SERVING, completed},
};

size_t rendezvous_size_bytes(uint32_t peers)
{
    return sizeof(struct rendezvous) + peers * sizeof(struct rendezvous_peer);
}

void rendezvous_init(struct rendezvous *state, struct rendezvous_config config, uint32_t peers)
{
    assert(0 < config.min_size && config.min_size <= config.first_size);
    assert(config.first_size <= config.max_size && config.max_size <= peers);
    memset(state, 0, rendezvous_size_bytes(peers));
    state->config = config;
    state->room = peers;
}

static bool is_message(enum rendezvous_event_kind kind)
{
    return kind >= RENDEZVOUS_JOIN && kind <= RENDEZVOUS_CHECKPOINT;
}

void rendezvous_step(struct rendezvous *state, const struct rendezvous_event *event,
                     struct rendezvous_effects *ret)
{
    assert(event->kind < RENDEZVOUS_EVENT_KINDS &&
           ret->room >= RENDEZVOUS_EFFECTS_MAX(state->room));
    const struct rule *rule = &rules[event->kind];
    struct turn t = {state, event, ret};
    ret->count = 0;
    if (state->phase == RENDEZVOUS_OVER && is_message(event->kind)) {
        turn_expel(&t, event->incarnation, RENDEZVOUS_DONE);
    } else if (rule->phases & 1u << state->phase) {
        rule->act(&t);
        rendezvous_journal_sync(&t);
    }
}

const struct rendezvous_peer *rendezvous_find(const struct rendezvous *state, uint64_t incarnation)
{
    return turn_find((struct rendezvous *)state, incarnation);
}

bool rendezvous_may_grant(const struct rendezvous *state, uint64_t incarnation)
{
    const struct rendezvous_peer *peer = rendezvous_find(state, incarnation);
    return (state->granting || PLANTED(EARLY_GRANTS)) && state->phase == RENDEZVOUS_RUNNING &&
           peer && peer->standing == RENDEZVOUS_MEMBER && peer->connected && !peer->leaving;
}

const char *rendezvous_check(const struct rendezvous *s)
{
    if (s->durable > s->logged || s->checkpoint > s->logged) {
        return "what is durable, or has a checkpoint, is in the log";
    }
    for (uint32_t i = 0; i < s->room; i++) {
        const struct rendezvous_peer *peer = &s->peers[i];
        if (peer->standing == RENDEZVOUS_JOINING && (peer->reported || peer->counted)) {
            return "a joiner has nothing to report";
        }
        if (peer->standing == RENDEZVOUS_MEMBER && peer->reported &&
            s->phase == RENDEZVOUS_RUNNING) {
            return "no member has closed a generation that goes on";
        }
        for (uint32_t j = 0; j < i; j++) {
            if (peer->standing != RENDEZVOUS_FREE && s->peers[j].standing != RENDEZVOUS_FREE &&
                s->peers[j].incarnation == peer->incarnation) {
                return "a process is there once";
            }
        }
    }
    return NULL;
}
