/* See round.h. */
#include "rendezvous/round.h"

#include "commit/planted.h"
#include "commit/tally.h"
#include "rendezvous/journal.h"

#include <assert.h>

/* Rounds without a step after which the younger of two that cannot reach each other goes. */
enum { PATIENCE = 3 };

/* ---- Closing ---- */

void round_send_close(struct turn *t, const struct rendezvous_peer *peer)
{
    turn_send(t, peer,
              (struct rendezvous_effect){.kind = RENDEZVOUS_CLOSE,
                                         .generation = t->s->generation,
                                         .boundary = !t->s->hard});
}

void round_close(struct turn *t, bool hard)
{
    struct rendezvous *s = t->s;
    bool begins = s->phase == RENDEZVOUS_RUNNING;
    if (!begins && !(s->phase == RENDEZVOUS_CLOSING && hard && !s->hard)) {
        return;
    }
    s->phase = RENDEZVOUS_CLOSING;
    s->hard = hard;
    for (uint32_t i = 0; i < s->room; i++) {
        struct rendezvous_peer *peer = &s->peers[i];
        if (peer->standing == RENDEZVOUS_MEMBER && !peer->gone && !peer->reported) {
            round_send_close(t, peer);
        }
    }
    if (hard) {
        turn_emit(
            t, (struct rendezvous_effect){.kind = RENDEZVOUS_AWAIT, .generation = s->generation});
    }
}

void round_close_if_wanted(struct turn *t)
{
    struct rendezvous *s = t->s;
    uint32_t members = 0, leavers = 0;
    bool joiner = false;
    if (s->phase != RENDEZVOUS_RUNNING) {
        return;
    }
    for (uint32_t i = 0; i < s->room; i++) {
        const struct rendezvous_peer *peer = &s->peers[i];
        bool member = peer->standing == RENDEZVOUS_MEMBER && !peer->gone;
        members += member;
        leavers += member && peer->leaving && !s->complete;
        joiner = joiner || (peer->standing == RENDEZVOUS_JOINING && peer->connected);
    }
    joiner = joiner && members - leavers < s->config.max_size && !s->complete;
    bool wanted = (s->settled && (joiner || leavers > 0)) || (leavers > 0 && leavers == members);
    if (wanted) {
        round_close(t, false);
    }
}

/* ---- Who goes on ---- */

static bool has_reported(const struct rendezvous_peer *peer)
{
    return peer->standing == RENDEZVOUS_MEMBER && peer->reported && !peer->gone;
}

/* Who leaves while the end is all that is left has finished by it. */
static uint32_t take_stayers(struct rendezvous *s, bool ending)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->room; i++) {
        struct rendezvous_peer *peer = &s->peers[i];
        peer->next = has_reported(peer) && (!peer->leaving || ending);
        count += peer->next;
    }
    return count;
}

static void forget_choice(struct rendezvous *s)
{
    for (uint32_t i = 0; i < s->room; i++) {
        s->peers[i].next = false;
    }
}

/* The state would go with those that leave: they stay until another has it. */
static uint32_t keep_holders(struct rendezvous *s, uint32_t count)
{
    bool holder = false;
    for (uint32_t i = 0; i < s->room; i++) {
        holder = holder || (s->peers[i].next && s->peers[i].loaded);
    }
    for (uint32_t i = 0; i < s->room && !holder; i++) {
        struct rendezvous_peer *peer = &s->peers[i];
        if (has_reported(peer) && peer->loaded) {
            peer->next = true;
            count++;
        }
    }
    return count;
}

/* There is nobody for whom they could stay. */
static void release_leavers(struct turn *t)
{
    for (uint32_t i = 0; i < t->s->room; i++) {
        struct rendezvous_peer *peer = &t->s->peers[i];
        if (has_reported(peer) && peer->leaving) {
            turn_expel(t, peer->incarnation, RENDEZVOUS_LEFT);
            peer->gone = true;
            peer->connected = false;
        }
    }
}

static bool may_join(const struct rendezvous_peer *peer)
{
    return peer->standing == RENDEZVOUS_JOINING && peer->connected;
}

static uint32_t count_joiners(const struct rendezvous *s, uint64_t age)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->room; i++) {
        count += may_join(&s->peers[i]) && s->peers[i].age <= age;
    }
    return count;
}

/* So that so many joiners at most are not younger: each has an age of its own. */
static uint64_t find_age(const struct rendezvous *s, uint32_t most)
{
    uint64_t least = 0, age = s->last_age;
    if (count_joiners(s, age) <= most) {
        return age;
    }
    while (age - least > 1) { /* too many up to `age`, not up to `least` */
        uint64_t middle = least + (age - least) / 2;
        *(count_joiners(s, middle) <= most ? &least : &age) = middle;
    }
    return least;
}

/* The oldest. None where only the end is to be reached. */
static uint32_t take_joiners(struct rendezvous *s, uint32_t count, bool ending)
{
    if (ending || count >= s->config.max_size) {
        return count;
    }
    uint64_t age = find_age(s, s->config.max_size - count);
    for (uint32_t i = 0; i < s->room; i++) {
        struct rendezvous_peer *peer = &s->peers[i];
        if (may_join(peer) && peer->age <= age) {
            peer->next = true;
            count++;
        }
    }
    return count;
}

void round_suspect(struct rendezvous *state, uint64_t by, uint64_t lost)
{
    if (state->suspecting == 0 && lost != 0) {
        state->suspecting = by;
        state->suspected = lost;
    }
}

static bool is_only_holder(const struct rendezvous *s, const struct rendezvous_peer *one)
{
    for (uint32_t i = 0; i < s->room; i++) {
        const struct rendezvous_peer *peer = &s->peers[i];
        if (peer != one && peer->next && peer->loaded) {
            return false;
        }
    }
    return one->loaded;
}

/* Two that both go on and cannot reach each other would close each generation again. */
static void part_the_cut(struct rendezvous *s, uint64_t base)
{
    struct rendezvous_peer *a = turn_find(s, s->suspecting);
    struct rendezvous_peer *b = turn_find(s, s->suspected);
    bool cut = s->suspecting != 0 && a && b && a->next && b->next;
    s->stalled = !cut ? 0 : base > s->base ? 1 : s->stalled + 1;
    if (s->stalled >= PATIENCE) {
        struct rendezvous_peer *younger = a->age > b->age ? a : b;
        if (is_only_holder(s, younger)) {
            younger = younger == a ? b : a;
        }
        younger->next = false;
        s->stalled = 0;
    }
}

/* ---- The decision ---- */

static void record(struct turn *t, uint64_t base, bool restore)
{
    struct rendezvous *s = t->s;
    bool prepared = !restore && base > s->logged;
    assert(restore || base <= s->logged + 1); /* reports bring their steps */
    s->phase = RENDEZVOUS_RECORDING;
    s->next_base = base;
    s->next_restore = restore;
    if (PLANTED(OPEN_BEFORE_JOURNAL)) {
        round_open(t);
        rendezvous_journal_append(t,
                                  (struct rendezvous_effect){.kind = RENDEZVOUS_APPEND_GENERATION,
                                                             .generation = s->generation,
                                                             .lineage = s->lineage,
                                                             .version = base,
                                                             .restore = restore,
                                                             .prepared = prepared});
        s->logged = base;
        return;
    }
    rendezvous_journal_append(
        t, (struct rendezvous_effect){.kind = RENDEZVOUS_APPEND_GENERATION,
                                      .generation = s->generation + 1,
                                      .lineage = s->lineage + restore,
                                      .version = base,
                                      .restore = restore && !PLANTED(RESTORE_NOT_JOURNALED),
                                      .prepared = prepared});
    s->unreadable = false;
    if (restore) {
        rendezvous_journal_forget_checkpoints(s, base);
    }
    if (restore && !PLANTED(RESTORE_KEEPS_LOG)) {
        rendezvous_journal_cut(s, base);
    } else if (!restore) {
        s->logged = base;
    }
}

static void end(struct turn *t)
{
    struct rendezvous *s = t->s;
    for (uint32_t i = 0; i < s->room; i++) {
        struct rendezvous_peer *peer = &s->peers[i];
        if (peer->standing != RENDEZVOUS_FREE && peer->connected && !peer->gone) {
            turn_expel(t, peer->incarnation, RENDEZVOUS_DONE);
        }
    }
    s->phase = RENDEZVOUS_OVER;
    turn_emit(t, (struct rendezvous_effect){.kind = RENDEZVOUS_END});
}

/* Once the log is complete, who is silent may have ended well: it is waited for. */
static enum commit_verdict count_votes(const struct rendezvous *s, uint64_t *ret_base)
{
    struct commit_tally tally = {0};
    for (uint32_t i = 0; i < s->room; i++) {
        const struct rendezvous_peer *peer = &s->peers[i];
        if (peer->standing == RENDEZVOUS_MEMBER) {
            const struct commit_vote vote = {.reported = peer->reported,
                                             .gone = peer->gone,
                                             .silent = peer->silent && !s->complete,
                                             .loaded = peer->loaded,
                                             .prepared = peer->prepared,
                                             .version = peer->version};
            commit_tally_add(&tally, &vote);
        }
    }
    return commit_tally_verdict(&tally, ret_base);
}

void round_decide(struct turn *t)
{
    struct rendezvous *s = t->s;
    uint64_t base = rendezvous_journal_last_checkpoint(s);
    if (s->phase != RENDEZVOUS_CLOSING || !s->serving) {
        return;
    }
    enum commit_verdict verdict = count_votes(s, &base);
    if (verdict == COMMIT_WAIT) {
        return;
    }
    bool restore = verdict == COMMIT_RESTORE;
    if (!restore && base < s->logged) {
        base = s->logged; /* reports contradict the log: who is behind it stops (7) */
    }
    if (restore && s->complete && s->finished) {
        end(t);
        return;
    }
    bool ending = s->complete && !restore;
    uint32_t count = take_joiners(s, take_stayers(s, ending), ending);
    uint32_t least = s->generation == 0 ? s->config.first_size : s->config.min_size;
    if (count == 0) {
        release_leavers(t);
        return;
    }
    count = restore ? count : keep_holders(s, count);
    if (count < (ending ? 1 : least)) {
        forget_choice(s);
        return;
    }
    if (!ending) {
        part_the_cut(s, base);
    }
    record(t, base, restore);
}

/* ---- Opening ---- */

void round_send_open(struct turn *t, const struct rendezvous_peer *peer)
{
    const struct rendezvous *s = t->s;
    turn_send(t, peer,
              (struct rendezvous_effect){.kind = RENDEZVOUS_OPEN,
                                         .generation = s->generation,
                                         .lineage = s->lineage,
                                         .version = s->base,
                                         .restore = s->restored});
    rendezvous_journal_tell_checkpoints(t, peer);
}

static enum rendezvous_reason why_left_out(const struct rendezvous_peer *peer)
{
    return peer->finished   ? RENDEZVOUS_DONE
           : peer->leaving  ? RENDEZVOUS_LEFT
           : peer->gone     ? RENDEZVOUS_DIED
           : peer->reported ? RENDEZVOUS_UNREACHABLE
                            : RENDEZVOUS_SILENT;
}

static void leave_out(struct turn *t, struct rendezvous_peer *peer)
{
    if (peer->connected) {
        turn_expel(t, peer->incarnation, why_left_out(peer));
    }
    turn_emit(t, (struct rendezvous_effect){.kind = RENDEZVOUS_RETURN_LEASES,
                                            .to = peer->incarnation,
                                            .reason = why_left_out(peer)});
    turn_free(t->s, peer);
}

static void take_in(struct rendezvous *s, struct rendezvous_peer *peer)
{
    peer->loaded = peer->loaded && !s->restored;
    peer->opened_loaded = peer->loaded;
    peer->standing = RENDEZVOUS_MEMBER;
    peer->counted = true;
    peer->next = false;
    peer->reported = false;
    peer->ended = false;
    peer->silent = false;
    peer->prepared = false;
    s->settled = s->settled && peer->loaded;
}

static void begin_generation(struct rendezvous *s)
{
    s->phase = RENDEZVOUS_RUNNING;
    s->generation++;
    s->lineage += s->next_restore;
    s->base = s->next_base;
    s->restored = s->next_restore;
    s->settled = true;
    s->hard = false;
    s->granting = true; /* rule 9: a new generation is open */
    s->suspecting = 0;
    s->suspected = 0;
    s->complete = s->complete && !s->restored;
}

void round_open(struct turn *t)
{
    struct rendezvous *s = t->s;
    bool gone = false;
    begin_generation(s);
    if (s->restored && !PLANTED(RESTORE_KEEPS_LOG)) {
        turn_emit(t, (struct rendezvous_effect){.kind = RENDEZVOUS_CUT, .version = s->base});
    }
    for (uint32_t i = 0; i < s->room; i++) {
        struct rendezvous_peer *peer = &s->peers[i];
        if (peer->next) {
            take_in(s, peer);
            gone = gone || peer->gone;
        } else if (peer->standing == RENDEZVOUS_MEMBER) {
            leave_out(t, peer);
        }
    }
    for (uint32_t i = 0; i < s->room; i++) {
        if (s->peers[i].standing == RENDEZVOUS_MEMBER) {
            round_send_open(t, &s->peers[i]);
        }
    }
    if (gone) {
        round_close(t, true);
        round_decide(t);
    } else {
        round_close_if_wanted(t);
    }
}
