/* See round.h. */
#include "rendezvous/round.h"

#include "commit/planted.h"
#include "commit/tally.h"
#include "rendezvous/choice.h"
#include "rendezvous/journal.h"

#include <assert.h>

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

/* ---- The decision ---- */

static void record(struct turn *t, uint64_t base, bool restore)
{
    struct rendezvous *s = t->s;
    bool prepared = !restore && base > s->logged;
    assert(restore || base <= s->logged + 1); /* reports contain the steps */
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

/* Once the log is complete, a silent member may have ended well: the others wait for it. */
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
        base = s->logged; /* reports contradict the log: a member behind the log stops (7) */
    }
    if (restore && s->complete && s->finished) {
        end(t);
        return;
    }
    bool ending = s->complete && !restore;
    uint32_t count = choice_take_joiners(s, choice_take_stayers(s, ending), ending);
    uint32_t least = s->generation == 0 ? s->config.first_size : s->config.min_size;
    if (count == 0) {
        choice_release_leavers(t);
        return;
    }
    count = restore ? count : choice_keep_holders(s, count);
    if (count < (ending ? 1 : least)) {
        choice_forget(s);
        return;
    }
    if (!ending) {
        choice_part_the_cut(s, base);
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

/* When both connections have ended, the proof of the process's end may arrive a moment later,
 * because a kernel closes connections first. */
static enum rendezvous_reason why_left_out(const struct rendezvous_peer *peer)
{
    return peer->finished                ? RENDEZVOUS_DONE
           : peer->leaving               ? RENDEZVOUS_LEFT
           : peer->gone                  ? RENDEZVOUS_DIED
           : peer->reported              ? RENDEZVOUS_UNREACHABLE
           : peer->ended && peer->parted ? RENDEZVOUS_DIED
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
