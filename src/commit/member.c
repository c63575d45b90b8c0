/* See member.h. */
#include "commit/member.h"

#include "commit/planted.h"

#include <assert.h>
#include <string.h>

/* A call of commit_member_step() under way. */
struct turn {
    struct commit_member *m;
    const struct commit_event *event;
    struct commit_effects *effects;
};

static void emit(struct turn *t, struct commit_effect effect)
{
    assert(t->effects->count < COMMIT_EFFECTS_MAX);
    t->effects->list[t->effects->count++] = effect;
}

static void emit_step(struct turn *t, enum commit_effect_kind kind, uint64_t version)
{
    emit(t, (struct commit_effect){.kind = kind, .version = version});
}

static void finish_when_acknowledged(struct turn *t)
{
    struct commit_member *m = t->m;
    bool acked = m->acked >= m->version || PLANTED(EXIT_BEFORE_ACK);
    if (m->complete && acked && m->stage != COMMIT_OVER) { /* rule 14 */
        m->stage = COMMIT_OVER;
        emit(t, (struct commit_effect){.kind = COMMIT_DO_LEAVE, .finished = true});
        emit(t, (struct commit_effect){.kind = COMMIT_DO_FINISH});
    }
}

/* ---- A step: rules 1 to 3 ---- */

static void enter(struct turn *t)
{
    struct commit_member *m = t->m;
    if (!m->entered && !m->complete) {
        m->entered = true;
        emit_step(t, COMMIT_DO_ENTER, m->version + 1);
    }
}

static void prepare(struct turn *t)
{
    struct commit_member *m = t->m;
    if (m->reduced && (m->loaded || PLANTED(UNLOADED_VOTE))) { /* rule 8: only when loaded */
        m->reduced = false;
        m->prepared = true;
        m->stage = COMMIT_PREPARED;
        emit_step(t, COMMIT_DO_BARRIER, m->version + 1);
    }
}

static void reduced(struct turn *t)
{
    struct commit_member *m = t->m;
    if (m->entered && t->event->version == m->version + 1) {
        m->reduced = true;
        prepare(t);
    }
}

static void loaded(struct turn *t)
{
    struct commit_member *m = t->m;
    if (!m->loaded && t->event->version == m->version) {
        m->loaded = true;
        prepare(t);
    }
}

static void apply(struct turn *t)
{
    struct commit_member *m = t->m;
    m->version++;
    m->prepared = false;
    m->entered = false;
    m->stage = COMMIT_WORKING;
    emit_step(t, COMMIT_DO_APPLY, m->version);
}

/* ---- The end of a generation: rule 4 ---- */

static void close_generation(struct turn *t, uint64_t lost, bool ended)
{
    struct commit_member *m = t->m;
    m->stage = COMMIT_CLOSED;
    m->entered = false;
    m->reduced = false;
    m->boundary = false;
    emit(t, (struct commit_effect){.kind = COMMIT_DO_ABORT, .generation = m->generation});
    if (m->connected) {
        emit(t,
             (struct commit_effect){.kind = COMMIT_DO_REPORT, .incarnation = lost, .ended = ended});
    }
}

static void passed(struct turn *t)
{
    struct commit_member *m = t->m;
    if (t->event->version != m->version + 1) {
        return;
    }
    apply(t);
    if (m->connected) {
        emit_step(t, COMMIT_DO_COMMITS, m->version);
    }
    if (m->boundary) {
        close_generation(t, 0, false);
    }
}

static void lost(struct turn *t)
{
    close_generation(t, t->event->incarnation, t->event->ended);
}

static void closed_by_coordinator(struct turn *t)
{
    struct commit_member *m = t->m;
    if (t->event->boundary && (m->entered || m->prepared)) {
        m->boundary = true;
    } else {
        close_generation(t, 0, false);
    }
}

/* ---- The next generation: rules 7, 8 and 11 ---- */

static void work_in(struct turn *t)
{
    struct commit_member *m = t->m;
    const struct commit_event *open = t->event;
    m->generation = open->generation;
    m->lineage = open->lineage;
    m->version = open->version;
    m->acked = open->version; /* GEN was journaled with the log through base */
    m->stage = COMMIT_WORKING;
    m->prepared = false;
    emit_step(t, COMMIT_DO_TRIM, m->version);
    emit(t, (struct commit_effect){.kind = COMMIT_DO_FORM, .generation = m->generation});
}

static void discard(struct turn *t)
{
    if (t->m->prepared) {
        emit_step(t, COMMIT_DO_DISCARD, t->m->version + 1);
    }
}

static void fail_to_follow(struct turn *t)
{
    t->m->stage = COMMIT_OVER;
    emit(t, (struct commit_effect){.kind = COMMIT_DO_FAIL, .version = t->event->version});
}

static void open_generation(struct turn *t)
{
    struct commit_member *m = t->m;
    const struct commit_event *open = t->event;
    if (open->version > COMMIT_VERSION_MAX || (open->restore && m->loaded)) {
        fail_to_follow(t); /* rule 11: no other member had the state, and this member has it */
        return;
    }
    if (open->restore) {
        work_in(t);
        m->complete = false;
        emit_step(t, COMMIT_DO_RESTORE, m->version);
    } else if (!m->loaded) {
        discard(t);
        work_in(t);
        emit_step(t, COMMIT_DO_LOAD, m->version);
    } else if (open->version == m->version) {
        discard(t);
        work_in(t);
    } else if (open->version == m->version + 1 && m->prepared) {
        if (PLANTED(STEP_DISCARDED)) {
            discard(t);
        } else {
            apply(t);
        }
        work_in(t);
    } else {
        fail_to_follow(t);
        return;
    }
    finish_when_acknowledged(t);
}

static void expelled(struct turn *t)
{
    struct commit_member *m = t->m;
    if (m->stage == COMMIT_WORKING || m->stage == COMMIT_PREPARED) {
        emit(t, (struct commit_effect){.kind = COMMIT_DO_ABORT, .generation = m->generation});
    }
    discard(t);
    m->stage = COMMIT_OVER;
    emit(t, (struct commit_effect){.kind = COMMIT_DO_REJOIN});
}

/* ---- The coordinator ---- */

static void introduce(struct turn *t)
{
    struct commit_member *m = t->m;
    m->connected = true;
    if (m->generation == 0) {
        emit(t, (struct commit_effect){.kind = COMMIT_DO_JOIN});
    } else {
        emit(t, (struct commit_effect){.kind = COMMIT_DO_REPORT});
    }
    if (m->leaving) {
        emit(t, (struct commit_effect){.kind = COMMIT_DO_LEAVE});
    }
}

static void acknowledged(struct turn *t)
{
    struct commit_member *m = t->m;
    if (t->event->version > m->acked && t->event->version <= m->version) {
        m->acked = t->event->version;
        emit_step(t, COMMIT_DO_TRIM, m->acked);
        finish_when_acknowledged(t);
    }
}

static void leave(struct turn *t)
{
    struct commit_member *m = t->m;
    if (!m->leaving) {
        m->leaving = true;
        if (m->connected) {
            emit(t, (struct commit_effect){.kind = COMMIT_DO_LEAVE});
        }
    }
}

/* Only the term of the message matters. */
static void welcomed(struct turn *t)
{
    (void)t;
}

static void disconnected(struct turn *t)
{
    t->m->connected = false;
}

static void granted(struct turn *t)
{
    emit(t, (struct commit_effect){.kind = COMMIT_DO_KEEP});
}

static void completed(struct turn *t)
{
    t->m->complete = true;
    finish_when_acknowledged(t);
}

/* ---- The table ---- */

enum {
    OUT = 1 << COMMIT_OUT,
    WORKING = 1 << COMMIT_WORKING,
    PREPARED = 1 << COMMIT_PREPARED,
    CLOSED = 1 << COMMIT_CLOSED,
    INSIDE = WORKING | PREPARED,
    LIVING = OUT | INSIDE | CLOSED,
    ALL = LIVING | 1 << COMMIT_OVER,
};

/* What an event must match; other events are ignored. */
enum scope {
    OWN,        /* this process itself */
    GENERATION, /* the generation it is in */
    TERM,       /* a coordinator of this term or a later one */
    TERM_AND_GENERATION,
    TERM_AND_NEWER, /* of a generation that comes after its own */
    TERM_AND_SELF,  /* and of this very incarnation */
};

static const struct rule {
    unsigned stages;
    enum scope scope;
    void (*act)(struct turn *t);
} rules[COMMIT_EVENT_KINDS] = {
    [COMMIT_CONNECTED] = {LIVING, TERM, introduce},                        /* 9 */
    [COMMIT_WELCOMED] = {ALL, TERM, welcomed},                             /* 9 */
    [COMMIT_DISCONNECTED] = {LIVING, OWN, disconnected},                   /* */
    [COMMIT_OPEN] = {OUT | CLOSED, TERM_AND_NEWER, open_generation},       /* 7, 8, 11 */
    [COMMIT_CLOSE] = {INSIDE, TERM_AND_GENERATION, closed_by_coordinator}, /* 4 */
    [COMMIT_ACK] = {LIVING, TERM, acknowledged},                           /* 14 */
    [COMMIT_EXPELLED] = {LIVING, TERM_AND_SELF, expelled},                 /* 12 */
    [COMMIT_GRANT] = {LIVING, TERM_AND_SELF, granted},                     /* 9 */
    [COMMIT_READY] = {WORKING, GENERATION, enter},                         /* 1, 13 */
    [COMMIT_REDUCED] = {WORKING, GENERATION, reduced},                     /* 2 */
    [COMMIT_PASSED] = {PREPARED, GENERATION, passed},                      /* 3 */
    [COMMIT_LOST] = {INSIDE, GENERATION, lost},                            /* 4 */
    [COMMIT_LOADED] = {WORKING, GENERATION, loaded},                       /* 8 */
    [COMMIT_LEAVE] = {LIVING, OWN, leave},                                 /* */
    [COMMIT_COMPLETE] = {LIVING, OWN, completed},                          /* 13, 14 */
};

static bool is_meant(const struct commit_member *m, const struct commit_event *event,
                     enum scope scope)
{
    bool newest = event->term >= m->term || (PLANTED(OLD_GRANTS) && event->kind == COMMIT_GRANT);
    switch (scope) {
    case OWN: return true;
    case GENERATION: return event->generation == m->generation;
    case TERM: return newest;
    case TERM_AND_GENERATION: return newest && event->generation == m->generation;
    case TERM_AND_NEWER: return newest && event->generation > m->generation;
    case TERM_AND_SELF: return newest && event->incarnation == m->incarnation;
    }
    return false;
}

static bool carries_term(enum scope scope)
{
    return scope != OWN && scope != GENERATION;
}

void commit_member_init(struct commit_member *member, uint64_t incarnation)
{
    memset(member, 0, sizeof *member); /* the padding too, because copies are compared as bytes */
    member->incarnation = incarnation;
}

void commit_member_step(struct commit_member *member, const struct commit_event *event,
                        struct commit_effects *ret)
{
    assert(event->kind < COMMIT_EVENT_KINDS);
    const struct rule *rule = &rules[event->kind];
    unsigned stages = rule->stages;
    if (PLANTED(LATE_COMPLETION) && event->kind == COMMIT_PASSED && member->prepared) {
        stages |= CLOSED;
    }
    ret->count = 0;
    if ((stages & 1u << member->stage) && is_meant(member, event, rule->scope)) {
        struct turn t = {member, event, ret};
        if (carries_term(rule->scope) && event->term > member->term) {
            member->term = event->term;
        }
        rule->act(&t);
    }
}

const char *commit_member_check(const struct commit_member *m)
{
    bool inside = m->stage == COMMIT_WORKING || m->stage == COMMIT_PREPARED;
    if (m->acked > m->version) {
        return "what is acknowledged was applied";
    }
    if (m->stage != COMMIT_OVER && (m->stage == COMMIT_OUT) != (m->generation == 0)) {
        return "who is out is in no generation, all others are in one";
    }
    if ((m->stage == COMMIT_PREPARED && !m->prepared) ||
        (m->stage == COMMIT_WORKING && m->prepared)) {
        return "prepared is who holds a sum, working who does not";
    }
    if (m->prepared && !m->loaded) {
        return "who is prepared has the state";
    }
    if ((m->entered || m->boundary || m->reduced) && !inside && m->stage != COMMIT_OVER) {
        return "a step is entered inside of a generation";
    }
    return NULL;
}
