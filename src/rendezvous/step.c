/* rendezvous_step: the coordinator's table, and what each event does. See rendezvous.h. */
#include "rendezvous/rendezvous.h"

#include "commit/planted.h"
#include "rendezvous/journal.h"
#include "rendezvous/member.h"
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
    turn_free_all(s);
    s->generation = t->event->generation;
    s->lineage = t->event->lineage;
    s->base = t->event->version;
    s->logged = t->event->version;
    s->restored = t->event->restore;
    if (s->restored) {
        rendezvous_journal_forget_checkpoints(s, s->base);
    }
    s->last_age = 0;
}

static void replay_member(struct turn *t)
{
    struct rendezvous_peer *peer = turn_take(t->s, t->event->incarnation, RENDEZVOUS_MEMBER);
    if (peer) { /* otherwise the job was written with more room: other members are unknown here */
        peer->age = t->event->age;
        peer->opened_loaded = t->event->loaded && !t->s->restored;
        t->s->last_age = peer->age > t->s->last_age ? peer->age : t->s->last_age;
    }
}

static void replay_log(struct turn *t)
{
    t->s->logged = t->event->version;
}

static void replay_checkpoint(struct turn *t)
{
    rendezvous_journal_note_checkpoint(t->s, t->event->version);
}

static void start(struct turn *t)
{
    struct rendezvous *s = t->s;
    s->phase = s->generation == 0 ? RENDEZVOUS_CLOSING : RENDEZVOUS_RUNNING;
    s->durable = s->logged;
    s->settled = s->generation > 0 && s->logged > s->base;
    s->granting = false;
    s->term = t->event->term > s->term ? t->event->term : s->term + 1;
    rendezvous_journal_append(
        t, (struct rendezvous_effect){.kind = RENDEZVOUS_APPEND_TERM, .term = s->term});
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
        round_decide(t); /* for deaths that were reported before */
    }
    if (s->syncing_generation && s->phase == RENDEZVOUS_RECORDING) {
        s->syncing_generation = false;
        round_open(t); /* before ACK: a member that is left out must not end well because of it */
    }
    rendezvous_journal_synced(t);
}

/* The current step is given up, too, because its members do not know the new content of OPEN. */
static void reopen(struct turn *t)
{
    round_close(t, true);
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
    [RENDEZVOUS_JOIN] = {SERVING, member_join},
    [RENDEZVOUS_LEAVE] = {SERVING, member_leave},
    [RENDEZVOUS_REPORT] = {SERVING, member_report},
    [RENDEZVOUS_COMMITS] = {SERVING, member_commits},
    [RENDEZVOUS_UNREADABLE] = {SERVING, member_unreadable},
    [RENDEZVOUS_CHECKPOINT] = {SERVING, member_checkpoint},
    [RENDEZVOUS_DISCONNECTED] = {SERVING, member_disconnected},
    [RENDEZVOUS_CONNECTED] = {SERVING, member_connected},
    [RENDEZVOUS_DEAD] = {SERVING, member_dead},
    [RENDEZVOUS_DEADLINE] = {SERVING, deadline},
    [RENDEZVOUS_DURABLE] = {SERVING, durable},
    [RENDEZVOUS_COMPLETE] = {SERVING, completed},
    [RENDEZVOUS_REOPEN] = {SERVING, reopen},
};

size_t rendezvous_size_bytes(uint32_t peers)
{
    return RENDEZVOUS_SIZE_BYTES(peers);
}

void rendezvous_init(struct rendezvous *state, struct rendezvous_config config, uint32_t peers)
{
    assert(0 < config.min_size && config.min_size <= config.first_size);
    assert(config.first_size <= config.max_size && config.max_size <= peers);
    memset(state, 0, rendezvous_size_bytes(peers));
    state->config = config;
    state->lineage = config.lineage;
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
    if (s->unreadable && s->older_count == 0) {
        return "there is a checkpoint before one that cannot be read";
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
    return turn_check(s);
}
