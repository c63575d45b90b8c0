/* An elastic job of thousands of members, in rounds: the coordinator's decisions as they ship
 * (src/coordinator/arbiter), members that do what src/commit says, frames of src/wire, and random
 * kills, joins, leaves and restarts of the coordinator. In a round each member that lives receives
 * its messages, and does what it can; one in eight of them sleeps, so that all are at different
 * places. job.h tests any order of a few processes; here only the number of members matters.
 *
 * Invariants at the end of each round: those of both cores; steps are applied in their order, each
 * once; all members that hear of a generation hear of the same members, each with one rank, and
 * they share the micro-batches of a step; when a member ends well, all steps are in the journal;
 * the job ends.
 *
 * Tests only: a violated invariant fails the test. Memory: the caller's, and crowd_done.
 */
#pragma once

#include "base/testing/test.h"
#include "base/testing/test_draw.h"
#include "client/plan/plan.h"
#include "commit/member.h"
#include "coordinator/arbiter/arbiter.h"

enum {
    STEPS = 40,
    GENERATIONS_MAX = 2000,
    HEARD_MAX = 64,
};

/* A message that was received, in the order of sending; the members of OPEN are in struct
 * generation. */
struct heard {
    uint8_t kind, reason;
    bool restore, boundary;
    uint64_t term, generation, base, lineage, incarnation;
};

struct worker {
    struct commit_member core;
    uint64_t model, term;
    uint64_t ranked; /* the newest generation that it is a member of */
    bool lives, buried, known, connected, declared, loading, restoring, finished;
    uint32_t heard_count;
    struct heard heard[HEARD_MAX];
};

/* What all members of a generation can see of each other. */
struct generation {
    uint64_t digest; /* of its members in rank order */
    uint32_t members;
    uint32_t entered[STEPS + 2], prepared[STEPS + 2]; /* how many members, by step */
    bool closed;
    uint64_t lost; /* an incarnation that has ended; 0: none */
};

struct record {
    uint32_t kind;
    size_t count;
    uint8_t *bytes;
};

struct crowd {
    struct plan plan;
    uint64_t random;
    int64_t now_ms;
    uint32_t members, killed, joined, left, restarts, finished;
    struct worker *workers; /* by incarnation - 1 */
    size_t worker_count, worker_room;
    struct generation generations[GENERATIONS_MAX];
    struct arbiter *arbiter;
    struct arbiter_effects effects;
    struct record *journal;
    size_t journal_count, journal_room, durable;
    uint64_t durable_version;
    bool serving, sync_due, over;
};

uint64_t crowd_incarnation(const struct crowd *c, const struct worker *w);

/* crowd_coordinator.c */
void crowd_begin(struct crowd *c);
void crowd_end_term(struct crowd *c);
void crowd_feed(struct crowd *c, struct arbiter_event event);
void crowd_sync(struct crowd *c);
/* Starts the coordinator again with the first `kept` records of its journal. */
void crowd_restart(struct crowd *c, size_t kept);
void crowd_done(struct crowd *c);

/* crowd_member.c */
void crowd_launch(struct crowd *c);
void crowd_tell(struct crowd *c, struct worker *w, struct commit_event event);
void crowd_die(struct crowd *c, struct worker *w);
/* The worker receives the messages that have come, and does what it can. */
void crowd_take_turn(struct crowd *c, struct worker *w);
