/* See journal.h. */
#include "rendezvous/journal.h"

#include "commit/member.h"
#include "commit/planted.h"

#include <string.h>

void rendezvous_journal_append(struct turn *t, struct rendezvous_effect effect)
{
    turn_emit(t, effect);
    t->s->appended = true;
}

static void acknowledge(struct turn *t)
{
    struct rendezvous *s = t->s;
    for (uint32_t i = 0; i < s->room; i++) {
        if (s->peers[i].standing == RENDEZVOUS_MEMBER) {
            turn_send(t, &s->peers[i],
                      (struct rendezvous_effect){.kind = RENDEZVOUS_ACK, .version = s->durable});
        }
    }
}

bool rendezvous_journal_add_steps(struct turn *t, uint64_t first, uint64_t version)
{
    struct rendezvous *s = t->s;
    if (version <= s->logged) {
        return true;
    }
    if (first == 0 || first > s->logged + 1 || version > COMMIT_VERSION_MAX) {
        return false;
    }
    rendezvous_journal_append(t, (struct rendezvous_effect){.kind = RENDEZVOUS_APPEND_LOG,
                                                            .first = s->logged + 1,
                                                            .version = version});
    s->logged = version;
    s->settled = true; /* rule 8: all members had the state, or none had passed */
    if (PLANTED(ACK_BEFORE_JOURNAL)) {
        s->durable = version;
        acknowledge(t);
    }
    return true;
}

void rendezvous_journal_note_checkpoint(struct rendezvous *s, uint64_t version)
{
    enum { ROOM = RENDEZVOUS_CHECKPOINTS_MAX - 1 };
    if (s->checkpoint > 0 && s->older_count == ROOM) {
        memmove(s->older_checkpoints, s->older_checkpoints + 1,
                (ROOM - 1) * sizeof s->older_checkpoints[0]);
        s->older_count--;
    }
    if (s->checkpoint > 0) {
        s->older_checkpoints[s->older_count++] = s->checkpoint;
    }
    s->checkpoint = version;
}

uint64_t rendezvous_journal_last_checkpoint(const struct rendezvous *s)
{
    return s->unreadable ? s->older_checkpoints[s->older_count - 1] : s->checkpoint;
}

void rendezvous_journal_forget_checkpoints(struct rendezvous *s, uint64_t version)
{
    while (s->checkpoint > version && s->older_count > 0) {
        s->checkpoint = s->older_checkpoints[--s->older_count];
        s->older_checkpoints[s->older_count] = 0; /* copies are compared as bytes */
    }
}

static void tell_checkpoints(struct turn *t)
{
    for (uint32_t i = 0; i < t->s->room; i++) {
        if (t->s->peers[i].standing == RENDEZVOUS_MEMBER) {
            rendezvous_journal_tell_checkpoints(t, &t->s->peers[i]);
        }
    }
}

void rendezvous_journal_tell_checkpoints(struct turn *t, const struct rendezvous_peer *peer)
{
    bool durable = !t->s->tell_pending && !t->s->syncing_checkpoint; /* else it is sent later */
    if (t->s->checkpoint > 0 && durable) {
        turn_send(t, peer, (struct rendezvous_effect){.kind = RENDEZVOUS_TELL_CHECKPOINTS});
    }
}

void rendezvous_journal_add_checkpoint(struct turn *t, uint64_t version)
{
    struct rendezvous *s = t->s;
    if (version <= s->checkpoint) {
        return;
    }
    if (version > s->durable) {
        s->pending_checkpoint = version;
        return;
    }
    rendezvous_journal_note_checkpoint(s, version);
    s->pending_checkpoint = 0;
    s->tell_pending = true;
    rendezvous_journal_append(
        t, (struct rendezvous_effect){.kind = RENDEZVOUS_APPEND_CHECKPOINT, .version = version});
}

void rendezvous_journal_acknowledge(struct turn *t, const struct rendezvous_peer *peer,
                                    uint64_t version)
{
    bool heard = t->s->phase == RENDEZVOUS_RUNNING || t->s->phase == RENDEZVOUS_CLOSING;
    if (heard && version <= t->s->durable) {
        turn_send(t, peer,
                  (struct rendezvous_effect){.kind = RENDEZVOUS_ACK, .version = t->s->durable});
    }
}

void rendezvous_journal_sync(struct turn *t)
{
    struct rendezvous *s = t->s;
    if (s->appended && !s->syncing) {
        s->appended = false;
        s->syncing = true;
        s->syncing_log = s->logged;
        s->syncing_checkpoint = s->tell_pending;
        s->tell_pending = false;
        s->syncing_generation = s->phase == RENDEZVOUS_RECORDING;
        turn_emit(t, (struct rendezvous_effect){.kind = RENDEZVOUS_SYNC});
    }
}

void rendezvous_journal_synced(struct turn *t)
{
    struct rendezvous *s = t->s;
    if (s->syncing_log > s->durable) {
        s->durable = s->syncing_log;
        acknowledge(t);
    }
    if (s->syncing_checkpoint) {
        s->syncing_checkpoint = false;
        tell_checkpoints(t);
    }
    if (s->pending_checkpoint > 0 && s->pending_checkpoint <= s->durable) {
        rendezvous_journal_add_checkpoint(t, s->pending_checkpoint);
    }
}

void rendezvous_journal_cut(struct rendezvous *state, uint64_t version)
{
    state->logged = version;
    state->pending_checkpoint = 0;
    state->durable = state->durable < version ? state->durable : version;
    state->syncing_log = state->syncing_log < version ? state->syncing_log : version;
}
