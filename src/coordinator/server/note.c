/* Prints those messages of members that are meant for people. See internal.h. */
#include "coordinator/server/internal.h"

#include "base/time/clock.h"

#include <stdio.h>

enum { NS_OF_MS = 1000000 };

/* Warns once in SERVER_WARN_MS: a member reports a full disk again and again, and all members
 * report a checkpoint that cannot be read. */
static void say_checkpoint_failed(struct server *s, uint64_t incarnation,
                                  const struct wire_checkpoint_failed *told)
{
    int64_t now_ms = server_now_ms(), *last_ms = &s->checkpoint_said_ms[told->reading];
    char why[SERVER_WHY_BYTES] = "";
    if (*last_ms > 0 && now_ms - *last_ms < SERVER_WARN_MS) {
        return;
    }
    *last_ms = now_ms;
    for (uint32_t i = 0; i < told->why.count && i + 1 < sizeof why; i++) {
        char c = told->why.bytes[i];
        why[i] = c;
        if (c < ' ' || c >= 0x7f) {
            why[i] = '?';
        }
    }
    report_say(&s->report, "warning: worker %s cannot %s the checkpoint of version %llu: %s",
               arbiter_name(s->arbiter, incarnation), told->reading ? "read" : "write",
               (unsigned long long)told->version, why);
}

/* Reports a member whose state was healed. By the rule of votes the others are right
 * (client/vote.h). */
static void note_healed(struct server *s, struct server_member *member,
                        const struct wire_healed *told)
{
    int64_t now_ms = server_now_ms();
    struct pace_recovery recovery = {.kind = PACE_HEALED,
                                     .at_unix_ms = clock_unix_ms(),
                                     .ms = (int64_t)(told->took_ns / NS_OF_MS)};
    const char *name = arbiter_name(s->arbiter, member->incarnation);
    if (member->healed_ms > 0 && now_ms - member->healed_ms < SERVER_WARN_MS) {
        return;
    }
    member->healed_ms = now_ms;
    (void)snprintf(recovery.worker, sizeof recovery.worker, "%s", name);
    pace_keep(&s->pace, &recovery);
    s->status_due = true;
    report_say(&s->report,
               "warning: after step %llu the state of %s was not that of the others: a bit had "
               "changed by itself; it has theirs since, after %lld ms",
               (unsigned long long)told->version, *name ? name : "a worker",
               (long long)recovery.ms);
}

/* Reports a silent member once, because each of the others may report it. */
static void note_silent(struct server *s, const struct wire_silent *told)
{
    struct server_member *member = server_member(s, told->incarnation);
    if (!member || member->silence_said) {
        return;
    }
    member->silence_said = true;
    const char *name = *member->name ? member->name : arbiter_name(s->arbiter, told->incarnation);
    report_say(&s->report, "%s gave no sign of life for %u ms, and the others ended its process",
               *name ? name : "a worker", told->silent_ms);
}

void server_note(struct server *s, uint64_t incarnation, const struct wire_message *m)
{
    struct server_member *member = server_member(s, incarnation);
    if (m->kind == WIRE_CHECKPOINT_FAILED) {
        say_checkpoint_failed(s, incarnation, &m->checkpoint_failed);
    }
    if (m->kind == WIRE_PROGRESS && member) {
        slow_hear(&member->slow, &m->progress);
    }
    if (m->kind == WIRE_HEALED && member) {
        note_healed(s, member, &m->healed);
    }
    if (m->kind == WIRE_SILENT) {
        note_silent(s, &m->silent);
    }
}
