/* The coordinator's table: traces of events, and the effects that each gives, by the rules of
 * rendezvous.h. test/simulation tests faults in any order.
 *
 * The effect CLOSE to process 1 is written as "CLOSE>1".
 */
#include "base/testing/test.h"
#include "rendezvous/rendezvous.h"

#include <stdio.h>
#include <stdlib.h>

enum { PEERS = 4 };

static const char *const names[] = {
    [RENDEZVOUS_APPEND_TERM] = "term",
    [RENDEZVOUS_APPEND_LOG] = "log",
    [RENDEZVOUS_APPEND_GENERATION] = "generation",
    [RENDEZVOUS_APPEND_CHECKPOINT] = "checkpoint",
    [RENDEZVOUS_SYNC] = "SYNC",
    [RENDEZVOUS_SERVE] = "SERVE",
    [RENDEZVOUS_OPEN] = "OPEN",
    [RENDEZVOUS_CLOSE] = "CLOSE",
    [RENDEZVOUS_ACK] = "ACK",
    [RENDEZVOUS_EXPEL] = "EXPEL",
    [RENDEZVOUS_KEEP_PREPARED] = "KEEP",
    [RENDEZVOUS_TAKE_LEASES] = "TAKE",
    [RENDEZVOUS_RESEND_GRANTS] = "RESEND",
    [RENDEZVOUS_RETURN_LEASES] = "RETURN",
    [RENDEZVOUS_CUT] = "CUT",
    [RENDEZVOUS_AWAIT] = "AWAIT",
    [RENDEZVOUS_END] = "END",
    [RENDEZVOUS_TELL_CHECKPOINTS] = "checkpoints",
    [RENDEZVOUS_LOST_STATE] = "LOST_STATE",
};

static struct rendezvous_effect list[RENDEZVOUS_EFFECTS_MAX(PEERS)];
static struct rendezvous_effects effects = {.room = RENDEZVOUS_EFFECTS_MAX(PEERS), .list = list};

static void expect(struct rendezvous *s, struct rendezvous_event event, const char *wanted)
{
    char text[512] = "";
    size_t used = 0;
    rendezvous_step(s, &event, &effects);
    for (size_t i = 0; i < effects.count; i++) {
        const struct rendezvous_effect *e = &list[i];
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? " " : "", names[e->kind]);
        if (e->to > 0) {
            used += (size_t)snprintf(text + used, sizeof text - used, ">%d", (int)e->to);
        }
        if (e->version > 0) {
            used += (size_t)snprintf(text + used, sizeof text - used, " %d", (int)e->version);
        }
    }
    assert_string_equal(text, wanted);
    if (rendezvous_check(s)) {
        fail_msg("after %s: %s", text, rendezvous_check(s));
    }
}

#define EVENT(event, ...) ((struct rendezvous_event){.kind = RENDEZVOUS_##event, __VA_ARGS__})
#define DURABLE ((struct rendezvous_event){.kind = RENDEZVOUS_DURABLE})
#define START ((struct rendezvous_event){.kind = RENDEZVOUS_START})

static struct rendezvous *fresh(uint32_t first_size)
{
    struct rendezvous *s = malloc(rendezvous_size_bytes(PEERS));
    struct rendezvous_config config = {.min_size = 1, .max_size = 3, .first_size = first_size};
    assert_non_null(s);
    rendezvous_init(s, config, PEERS);
    return s;
}

/* Returns a state with generation 1 of processes 1 and 2. */
static struct rendezvous *running(void)
{
    struct rendezvous *s = fresh(2);
    expect(s, START, "term SYNC");
    expect(s, DURABLE, "SERVE");
    expect(s, EVENT(JOIN, .incarnation = 1), "");
    expect(s, EVENT(JOIN, .incarnation = 2), "generation SYNC");
    expect(s, DURABLE, "CUT OPEN>1 OPEN>2");
    assert_int_equal(s->generation, 1);
    return s;
}

static void commit_one(struct rendezvous *s)
{
    expect(s, EVENT(COMMITS, .incarnation = 1, .generation = 1, .first = 1, .version = 1),
           "log 1 SYNC");
}

static void the_log_is_durable_before_it_is_acknowledged(void **state)
{
    (void)state;
    struct rendezvous *s = running();
    commit_one(s);
    expect(s, EVENT(COMMITS, .incarnation = 2, .generation = 1, .first = 1, .version = 2), "log 2");
    expect(s, DURABLE, "ACK>1 1 ACK>2 1 SYNC");
    expect(s, DURABLE, "ACK>1 2 ACK>2 2");
    free(s);
}

/* A member ignores an ACK that comes before it has applied the step: the ACK is sent again. */
static void a_durable_step_is_acknowledged_to_each_that_brings_it(void **state)
{
    (void)state;
    struct rendezvous *s = running();
    commit_one(s);
    expect(s, EVENT(COMMITS, .incarnation = 2, .generation = 1, .first = 1, .version = 1), "");
    expect(s, DURABLE, "ACK>1 1 ACK>2 1");
    expect(s, EVENT(COMMITS, .incarnation = 2, .generation = 1, .first = 1, .version = 1),
           "ACK>2 1");
    expect(s, EVENT(COMMITS, .incarnation = 2, .generation = 0, .first = 1, .version = 1), "");
    free(s);
}

static void a_death_closes_and_the_generation_is_durable_before_it_opens(void **state)
{
    (void)state;
    struct rendezvous *s = running();
    commit_one(s);
    expect(s, DURABLE, "ACK>1 1 ACK>2 1");
    expect(s, EVENT(DEAD, .incarnation = 2), "CLOSE>1 AWAIT");
    expect(s,
           EVENT(REPORT, .incarnation = 1, .generation = 1, .closed = true, .loaded = true,
                 .prepared = true, .first = 2, .version = 1),
           "KEEP generation 2 SYNC");
    assert_int_equal(s->logged, 2);
    expect(s, DURABLE, "RETURN>2 OPEN>1 2 ACK>1 2");
    free(s);
}

/* This is so even if all members would close at the end of the step: the step is given up. */
static void what_members_have_to_know_opens_the_generation_anew(void **state)
{
    (void)state;
    struct rendezvous *s = running();
    commit_one(s);
    expect(s, DURABLE, "ACK>1 1 ACK>2 1");
    expect(s, EVENT(JOIN, .incarnation = 3), "CLOSE>1 CLOSE>2");
    expect(s, EVENT(REOPEN), "CLOSE>1 CLOSE>2 AWAIT");
    assert_false(list[0].boundary);
    expect(s, EVENT(REOPEN), "");
    for (uint64_t who = 1; who <= 2; who++) {
        expect(s,
               EVENT(REPORT, .incarnation = who, .generation = 1, .closed = true, .loaded = true,
                     .first = 2, .version = 1),
               who == 1 ? "" : "generation 1 SYNC");
    }
    expect(s, EVENT(REOPEN), "");
    expect(s, DURABLE, "OPEN>1 1 OPEN>2 1 OPEN>3 1");
    expect(s, EVENT(REOPEN), "CLOSE>1 CLOSE>2 CLOSE>3 AWAIT");
    free(s);
}

/* There is room for one of two joiners, the older one; the other one takes the place of a member
 * later. */
static void there_are_no_more_members_than_the_most(void **state)
{
    (void)state;
    struct rendezvous *s = running();
    struct rendezvous_event report =
        EVENT(REPORT, .generation = 1, .closed = true, .loaded = true, .first = 2, .version = 1);
    commit_one(s);
    expect(s, DURABLE, "ACK>1 1 ACK>2 1");
    expect(s, EVENT(JOIN, .incarnation = 3), "CLOSE>1 CLOSE>2");
    expect(s, EVENT(JOIN, .incarnation = 4), "");
    report.incarnation = 1;
    expect(s, report, "CLOSE>2 AWAIT");
    report.incarnation = 2;
    expect(s, report, "generation 1 SYNC");
    expect(s, DURABLE, "OPEN>1 1 OPEN>2 1 OPEN>3 1");
    expect(s, EVENT(COMMITS, .incarnation = 1, .generation = 2, .first = 2, .version = 2),
           "log 2 SYNC"); /* and no generation is closed for a joiner that waits */
    expect(s, DURABLE, "ACK>1 2 ACK>2 2 ACK>3 2");
    expect(s, EVENT(DEAD, .incarnation = 2), "CLOSE>1 CLOSE>3 AWAIT");
    report.generation = 2;
    report.first = 3;
    report.version = 2;
    report.incarnation = 1;
    expect(s, report, "");
    report.incarnation = 3;
    expect(s, report, "generation 2 SYNC");
    expect(s, DURABLE, "RETURN>2 OPEN>1 2 OPEN>3 2 OPEN>4 2");
    free(s);
}

/* Ranks are slots: the first workers get them in the order in which they came. */
static void who_comes_has_the_rank_of_one_that_is_gone(void **state)
{
    (void)state;
    struct rendezvous *s = running();
    struct rendezvous_event report =
        EVENT(REPORT, .incarnation = 2, .generation = 1, .closed = true, .loaded = true, .first = 2,
              .version = 1);
    commit_one(s);
    expect(s, DURABLE, "ACK>1 1 ACK>2 1");
    expect(s, EVENT(DEAD, .incarnation = 1), "CLOSE>2 AWAIT");
    expect(s, report, "generation 1 SYNC");
    expect(s, DURABLE, "RETURN>1 OPEN>2 1");
    expect(s, EVENT(COMMITS, .incarnation = 2, .generation = 2, .first = 2, .version = 2),
           "log 2 SYNC");
    expect(s, DURABLE, "ACK>2 2");
    expect(s, EVENT(JOIN, .incarnation = 3), "CLOSE>2");
    report.generation = 2;
    report.first = 3;
    report.version = 2;
    expect(s, report, "AWAIT generation 2 SYNC");
    expect(s, DURABLE, "OPEN>3 2 OPEN>2 2");
    free(s);
}

static void joiners_wait_for_a_step_then_for_its_boundary(void **state)
{
    (void)state;
    struct rendezvous *s = running();
    expect(s, EVENT(JOIN, .incarnation = 3), "");
    expect(s, EVENT(COMMITS, .incarnation = 1, .generation = 1, .first = 1, .version = 1),
           "log 1 CLOSE>1 CLOSE>2 SYNC");
    assert_int_equal(s->phase, RENDEZVOUS_CLOSING);
    assert_false(s->hard);
    free(s);
}

static void the_silent_are_left_out_and_then_unknown(void **state)
{
    (void)state;
    struct rendezvous *s = running();
    struct rendezvous_event report = EVENT(REPORT, .incarnation = 1, .generation = 1,
                                           .closed = true, .loaded = true, .lost = 2, .first = 1);
    expect(s, report, "CLOSE>2 AWAIT");
    expect(s, EVENT(DEADLINE, .generation = 1), "generation SYNC");
    expect(s, DURABLE, "EXPEL>2 RETURN>2 OPEN>1");
    report.incarnation = 2;
    expect(s, report, "EXPEL>2");
    free(s);
}

/* The order in which the ends of its two connections are reported does not matter; one end alone is
 * not enough. */
static void who_has_lost_both_its_connections_is_not_waited_for(void **state)
{
    (void)state;
    struct rendezvous_event report = EVENT(REPORT, .incarnation = 1, .generation = 1,
                                           .closed = true, .loaded = true, .lost = 2, .first = 1);
    struct rendezvous *s = running();
    expect(s, EVENT(DISCONNECTED, .incarnation = 2), "");
    expect(s, report, "AWAIT");
    free(s);
    report.ended = true;
    s = running();
    expect(s, report, "CLOSE>2 AWAIT");
    expect(s, EVENT(DISCONNECTED, .incarnation = 2), "generation SYNC");
    expect(s, DURABLE, "RETURN>2 OPEN>1");
    free(s);
    s = running();
    expect(s, EVENT(DISCONNECTED, .incarnation = 2), "");
    expect(s, report, "AWAIT generation SYNC");
    free(s);
}

/* A member that comes back will report over its new connection or, if the coordinator is a new one,
 * connect. */
static void who_comes_back_is_waited_for(void **state)
{
    (void)state;
    struct rendezvous_event report =
        EVENT(REPORT, .incarnation = 1, .generation = 1, .closed = true, .loaded = true, .lost = 2,
              .ended = true, .first = 1);
    struct rendezvous *s = running();
    expect(s, EVENT(DISCONNECTED, .incarnation = 2), "");
    expect(s, EVENT(CONNECTED, .incarnation = 2), "");
    expect(s, report, "AWAIT");
    expect(s, EVENT(DISCONNECTED, .incarnation = 2), "generation SYNC");
    free(s);
    s = running();
    expect(s, report, "CLOSE>2 AWAIT");
    expect(s, EVENT(CONNECTED, .incarnation = 2), "");
    report.incarnation = 2;
    report.lost = 1;
    expect(s, report, "RESEND>2 ACK>2 generation SYNC");
    free(s);
    s = fresh(2);
    expect(s, EVENT(REPLAY_GENERATION, .generation = 1), "");
    expect(s, EVENT(REPLAY_MEMBER, .incarnation = 1, .age = 1), "");
    expect(s, EVENT(REPLAY_MEMBER, .incarnation = 2, .age = 2), "");
    expect(s, START, "term SYNC");
    expect(s, DURABLE, "SERVE");
    report.incarnation = 1;
    report.lost = 2;
    expect(s, report, "TAKE>1 ACK>1 AWAIT");
    free(s);
}

/* A member that is the only one with the model, as far as is known, is not given up because of
 * this. */
static void who_has_the_model_is_waited_for_without_connections(void **state)
{
    (void)state;
    struct rendezvous *s = running();
    expect(s, EVENT(DISCONNECTED, .incarnation = 2), "");
    expect(s,
           EVENT(REPORT, .incarnation = 1, .generation = 1, .closed = true, .lost = 2,
                 .ended = true, .first = 1),
           "AWAIT");
    expect(s, EVENT(DEAD, .incarnation = 2), "generation SYNC");
    free(s);
}

/* Of two coordinators, the one that may begin later has the higher term, whatever the journal has
 * lost. */
static void a_term_is_not_below_the_least(void **state)
{
    (void)state;
    static const uint64_t table[][2] = {{0, 5}, {2, 5}, {4, 5}, {5, 5}, {9, 9}}; /* least, term */
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct rendezvous *s = fresh(2);
        expect(s, EVENT(REPLAY_TERM, .term = 4), "");
        expect(s, EVENT(START, .term = table[i][0]), "term SYNC");
        assert_int_equal(s->term, table[i][1]);
        free(s);
    }
}

static void a_coordinator_that_begins_again_opens_what_its_journal_has(void **state)
{
    (void)state;
    struct rendezvous *s = fresh(2);
    expect(s, EVENT(REPLAY_TERM, .term = 4), "");
    expect(s, EVENT(REPLAY_GENERATION, .generation = 3, .version = 5), "");
    expect(s, EVENT(REPLAY_MEMBER, .incarnation = 1, .age = 1), "");
    expect(s, EVENT(REPLAY_MEMBER, .incarnation = 2, .age = 2), "");
    expect(s, EVENT(REPLAY_LOG, .version = 6), "");
    expect(s, START, "term SYNC");
    expect(s, DURABLE, "SERVE");
    assert_int_equal(s->term, 5);
    expect(
        s,
        EVENT(REPORT, .incarnation = 1, .generation = 3, .loaded = true, .first = 6, .version = 7),
        "log 7 TAKE>1 ACK>1 6 SYNC");
    assert_false(rendezvous_may_grant(s, 1)); /* rule 9 */
    expect(s,
           EVENT(REPORT, .incarnation = 2, .generation = 2, .closed = true, .loaded = true,
                 .prepared = true, .version = 4),
           "OPEN>2 5 TAKE>2");
    assert_true(rendezvous_may_grant(s, 1));
    expect(s, EVENT(DISCONNECTED, .incarnation = 2), "");
    expect(
        s,
        EVENT(REPORT, .incarnation = 2, .generation = 3, .loaded = true, .first = 6, .version = 5),
        "RESEND>2 ACK>2 6");
    free(s);
}

static void who_brings_steps_that_do_not_follow_is_expelled(void **state)
{
    (void)state;
    struct rendezvous *s = running();
    expect(s, EVENT(COMMITS, .incarnation = 2, .generation = 1, .first = 2, .version = 3),
           "EXPEL>2 CLOSE>1 AWAIT");
    free(s);
    s = running();
    expect(s, EVENT(COMMITS, .incarnation = 2, .generation = 1, .first = 1, .version = UINT64_MAX),
           "EXPEL>2 CLOSE>1 AWAIT");
    free(s);
}

static void nobody_left_with_the_state_restores_the_checkpoint(void **state)
{
    (void)state;
    struct rendezvous *s = running();
    commit_one(s);
    expect(s, EVENT(CHECKPOINT, .incarnation = 1, .generation = 1, .version = 1), "");
    expect(s, DURABLE, "ACK>1 1 ACK>2 1 checkpoint 1 SYNC");
    expect(s, EVENT(COMMITS, .incarnation = 1, .generation = 1, .first = 2, .version = 2), "log 2");
    expect(s, EVENT(DEAD, .incarnation = 1), "CLOSE>2 AWAIT");
    expect(s, EVENT(DEAD, .incarnation = 2), "");
    expect(s, EVENT(JOIN, .incarnation = 3), "generation 1");
    expect(s, DURABLE, "SYNC");
    expect(s, DURABLE, "CUT 1 RETURN>1 RETURN>2 OPEN>3 1 checkpoints>3");
    assert_int_equal(s->lineage, 2);
    free(s);
}

static void a_checkpoint_is_told_once_it_is_durable(void **state)
{
    (void)state;
    struct rendezvous *s = running();
    commit_one(s);
    expect(s, DURABLE, "ACK>1 1 ACK>2 1");
    expect(s, EVENT(CHECKPOINT, .incarnation = 1, .generation = 1, .version = 1),
           "checkpoint 1 SYNC");
    expect(s, EVENT(CHECKPOINT, .incarnation = 1, .generation = 1, .version = 1), "");
    expect(s, DURABLE, "checkpoints>1 checkpoints>2");
    expect(s, EVENT(CHECKPOINT, .incarnation = 2, .generation = 1, .version = 1), "checkpoints>2");
    free(s);
}

/* Returns a state in which versions 1 and 2 have checkpoints, and no member is left. */
static struct rendezvous *restored(void)
{
    struct rendezvous *s = running();
    commit_one(s);
    expect(s, DURABLE, "ACK>1 1 ACK>2 1");
    for (uint64_t v = 1; v <= 2; v++) {
        expect(s, EVENT(CHECKPOINT, .incarnation = 1, .generation = 1, .version = v),
               v == 1 ? "checkpoint 1 SYNC" : "checkpoint 2 SYNC");
        expect(s, DURABLE, "checkpoints>1 checkpoints>2");
        expect(s,
               EVENT(COMMITS, .incarnation = 1, .generation = 1, .first = v + 1, .version = v + 1),
               v == 1 ? "log 2 SYNC" : "log 3 SYNC");
        expect(s, DURABLE, v == 1 ? "ACK>1 2 ACK>2 2" : "ACK>1 3 ACK>2 3");
    }
    expect(s, EVENT(DEAD, .incarnation = 1), "CLOSE>2 AWAIT");
    expect(s, EVENT(DEAD, .incarnation = 2), "");
    expect(s, EVENT(JOIN, .incarnation = 3), "generation 2 SYNC");
    expect(s, DURABLE, "CUT 2 RETURN>1 RETURN>2 OPEN>3 2 checkpoints>3");
    return s;
}

#define UNREADABLE(g, v) EVENT(UNREADABLE, .incarnation = 3, .generation = (g), .version = (v))
#define CLOSED_AT(g, v)                                                                            \
    EVENT(REPORT, .incarnation = 3, .generation = (g), .closed = true, .first = (v) + 1,           \
          .version = (v))

static void a_checkpoint_that_nobody_can_read_gives_way_to_the_one_before(void **state)
{
    (void)state;
    struct rendezvous *s = restored();
    expect(s, UNREADABLE(2, 1), ""); /* the generation began with another checkpoint */
    expect(s, UNREADABLE(1, 2), "");
    expect(s, UNREADABLE(2, 2), "CLOSE>3 AWAIT");
    expect(s, UNREADABLE(2, 2), ""); /* once is enough */
    expect(s, CLOSED_AT(2, 2), "generation 1 SYNC");
    expect(s, DURABLE, "CUT 1 OPEN>3 1 checkpoints>3");
    assert_int_equal(s->lineage, 3);
    assert_int_equal(s->checkpoint, 1);
    expect(s, UNREADABLE(3, 1), "LOST_STATE");
    free(s);
}

static void a_checkpoint_that_was_trained_from_can_be_read(void **state)
{
    (void)state;
    struct rendezvous *s = restored();
    expect(s, EVENT(COMMITS, .incarnation = 3, .generation = 2, .first = 3, .version = 3),
           "log 3 SYNC");
    expect(s, UNREADABLE(2, 2), "");
    free(s);
}

/* No member is asked to save a state that was just restored and lost again. */
static void nothing_is_saved_before_a_step_follows_the_restored_state(void **state)
{
    (void)state;
    struct rendezvous *s = restored();
    s->checkpoint = 1; /* as if the newest had been given up */
    expect(s, EVENT(CHECKPOINT, .incarnation = 3, .generation = 2, .version = 2), "");
    free(s);
}

static void the_younger_of_two_that_cannot_reach_each_other_goes(void **state)
{
    (void)state;
    struct rendezvous *s = running();
    for (uint64_t g = 1; g <= 3; g++) {
        struct rendezvous_event report =
            EVENT(REPORT, .incarnation = 1, .generation = g, .closed = true, .loaded = true,
                  .first = 1, .lost = 2);
        rendezvous_step(s, &report, &effects);
        report.incarnation = 2;
        report.lost = 1;
        expect(s, report, "generation SYNC");
        expect(s, DURABLE, g < 3 ? "OPEN>1 OPEN>2" : "EXPEL>2 RETURN>2 OPEN>1");
    }
    free(s);
}

/* If the younger one has the state, and the other one does not have it yet, the other one is left
 * out. */
static void who_alone_has_the_state_does_not_go(void **state)
{
    (void)state;
    struct rendezvous *s = running();
    for (uint64_t g = 1; g <= 3; g++) {
        struct rendezvous_event report =
            EVENT(REPORT, .incarnation = 1, .generation = g, .closed = true, .first = 1, .lost = 2);
        rendezvous_step(s, &report, &effects);
        report.incarnation = 2;
        report.lost = 1;
        report.loaded = true;
        expect(s, report, "generation SYNC");
        expect(s, DURABLE, g < 3 ? "OPEN>1 OPEN>2" : "EXPEL>1 RETURN>1 OPEN>2");
    }
    free(s);
}

static void the_job_is_done_when_the_last_has_finished(void **state)
{
    (void)state;
    struct rendezvous *s = running();
    commit_one(s);
    expect(s, EVENT(COMPLETE, .version = 1), "");
    expect(s, DURABLE, "ACK>1 1 ACK>2 1");
    expect(s, EVENT(LEAVE, .incarnation = 1, .finished = true), "");
    expect(s, EVENT(LEAVE, .incarnation = 2, .finished = true), "AWAIT END");
    expect(s, EVENT(JOIN, .incarnation = 3), "EXPEL>3");
    free(s);
}

/* This fault was found by test/simulation, as were the following three. */
static void a_last_member_that_leaves_is_let_go(void **state)
{
    (void)state;
    struct rendezvous *s = running();
    struct rendezvous_event report = EVENT(REPORT, .incarnation = 2, .generation = 1,
                                           .closed = true, .loaded = true, .first = 1);
    expect(s, EVENT(DEAD, .incarnation = 1), "CLOSE>2 AWAIT");
    expect(s, EVENT(LEAVE, .incarnation = 2), "");
    expect(s, report, "EXPEL>2");
    expect(s, EVENT(JOIN, .incarnation = 3), "generation SYNC");
    free(s);
}

static void commits_of_the_dead_are_not_heard(void **state)
{
    (void)state;
    struct rendezvous *s = running();
    expect(s, EVENT(DEAD, .incarnation = 2), "CLOSE>1 AWAIT");
    expect(s, EVENT(COMMITS, .incarnation = 2, .generation = 1, .first = 2, .version = 2), "");
    free(s);
}

static void who_was_left_out_may_have_finished(void **state)
{
    (void)state;
    struct rendezvous *s = running();
    commit_one(s);
    expect(s, EVENT(COMPLETE), "");
    expect(s, EVENT(DEAD, .incarnation = 1), "CLOSE>2 AWAIT");
    expect(s, EVENT(DEADLINE, .generation = 1), ""); /* 2 may be about to finish */
    expect(s, EVENT(DEAD, .incarnation = 2), "");
    expect(s, EVENT(LEAVE, .incarnation = 9, .finished = true), "END");
    free(s);
}

static void a_full_log_without_a_model_is_trained_again(void **state)
{
    (void)state;
    struct rendezvous *s = running();
    commit_one(s);
    expect(s, EVENT(COMPLETE), "");
    expect(s, EVENT(DEAD, .incarnation = 1), "CLOSE>2 AWAIT");
    expect(s, EVENT(DEAD, .incarnation = 2), "");
    expect(s, EVENT(JOIN, .incarnation = 3), "generation");
    assert_int_equal(s->logged, 0);
    free(s);
}

/* The copy includes the index by which processes are found. */
static void a_copy_of_the_bytes_is_a_copy_of_the_state(void **state)
{
    (void)state;
    struct rendezvous *s = running(), *copy = malloc(rendezvous_size_bytes(PEERS));
    assert_non_null(copy);
    expect(s, EVENT(JOIN, .incarnation = 7), "");
    memcpy(copy, s, rendezvous_size_bytes(PEERS));
    memset(s, 0xff, rendezvous_size_bytes(PEERS));
    free(s);
    for (uint64_t i = 0; i < 10; i++) {
        const struct rendezvous_peer *peer = rendezvous_find(copy, i);
        assert_int_equal(peer ? peer->incarnation : 0, i == 1 || i == 2 || i == 7 ? i : 0);
    }
    expect(copy, EVENT(LEAVE, .incarnation = 7), "EXPEL>7");
    assert_null(rendezvous_find(copy, 7));
    commit_one(copy);
    free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_of_the_bytes_is_a_copy_of_the_state),
        cmocka_unit_test(the_log_is_durable_before_it_is_acknowledged),
        cmocka_unit_test(a_durable_step_is_acknowledged_to_each_that_brings_it),
        cmocka_unit_test(a_death_closes_and_the_generation_is_durable_before_it_opens),
        cmocka_unit_test(what_members_have_to_know_opens_the_generation_anew),
        cmocka_unit_test(who_comes_has_the_rank_of_one_that_is_gone),
        cmocka_unit_test(joiners_wait_for_a_step_then_for_its_boundary),
        cmocka_unit_test(there_are_no_more_members_than_the_most),
        cmocka_unit_test(the_silent_are_left_out_and_then_unknown),
        cmocka_unit_test(who_has_lost_both_its_connections_is_not_waited_for),
        cmocka_unit_test(who_comes_back_is_waited_for),
        cmocka_unit_test(who_has_the_model_is_waited_for_without_connections),
        cmocka_unit_test(a_term_is_not_below_the_least),
        cmocka_unit_test(a_coordinator_that_begins_again_opens_what_its_journal_has),
        cmocka_unit_test(who_brings_steps_that_do_not_follow_is_expelled),
        cmocka_unit_test(nobody_left_with_the_state_restores_the_checkpoint),
        cmocka_unit_test(a_checkpoint_is_told_once_it_is_durable),
        cmocka_unit_test(a_checkpoint_that_nobody_can_read_gives_way_to_the_one_before),
        cmocka_unit_test(a_checkpoint_that_was_trained_from_can_be_read),
        cmocka_unit_test(nothing_is_saved_before_a_step_follows_the_restored_state),
        cmocka_unit_test(the_younger_of_two_that_cannot_reach_each_other_goes),
        cmocka_unit_test(who_alone_has_the_state_does_not_go),
        cmocka_unit_test(the_job_is_done_when_the_last_has_finished),
        cmocka_unit_test(a_last_member_that_leaves_is_let_go),
        cmocka_unit_test(commits_of_the_dead_are_not_heard),
        cmocka_unit_test(who_was_left_out_may_have_finished),
        cmocka_unit_test(a_full_log_without_a_model_is_trained_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
