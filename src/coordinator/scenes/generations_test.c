/* The arbiter in small scenes: generations. Which of them are announced, which workers are counted,
 * and which have ended well; all of this also after a restart. */
#include "coordinator/scenes/fixture.h"

static void what_is_announced_is_in_the_journal(void **state)
{
    (void)state;
    struct scene *scene = new_scene();
    assert_int_equal(scene->journaled, 2); /* the data set, the term */
    joins(scene, 1);
    assert_int_equal(scene->sent_count, 0); /* the first generation waits for two */
    joins(scene, 2);
    assert_int_equal(scene->journaled, 4); /* the generation, the names of its members */
    assert_int_equal(sent_to(scene, 1, WIRE_OPEN)->members, 2);
    assert_int_equal(sent_to(scene, 2, WIRE_OPEN)->appended, 4);
    asks(scene, 1, BATCH);
    assert_int_equal(sent_to(scene, 1, WIRE_GRANT)->range.count, BATCH);
    assert_int_equal(commits(scene, 1, 1, 0, BATCH), 0);
    assert_int_equal(sent_to(scene, 1, WIRE_ACK)->version, 1);
    assert_int_equal(sent_to(scene, 2, WIRE_ACK)->appended, 5);
    end_scene(scene);
}

static void the_end_is_in_the_ledger(void **state)
{
    (void)state;
    struct scene *scene = new_scene();
    joins(scene, 1);
    joins(scene, 2);
    for (uint64_t v = 1; v <= 5; v++) {
        asks(scene, 1, BATCH);
        assert_int_equal(sent_to(scene, 1, WIRE_GRANT)->range.first, (v - 1) * BATCH);
        assert_false(sent_to(scene, 1, WIRE_GRANT)->last);
        assert_int_equal(commits(scene, 1, v, (v - 1) * BATCH, BATCH), 0);
    }
    asks(scene, 1, BATCH);
    assert_true(sent_to(scene, 1, WIRE_GRANT)->last);
    assert_int_equal(sent_to(scene, 1, WIRE_GRANT)->ranges, 0);
    assert_false(scene->ended);
    finishes(scene, 1);
    assert_false(scene->ended);
    finishes(scene, 2);
    assert_true(scene->ended);
    begin(scene, scene->journaled); /* the job is not begun again */
    assert_true(scene->ended);
    end_scene(scene);
}

static void who_ended_well_needs_not_have_said_so(void **state)
{
    (void)state;
    struct scene *scene = new_scene();
    joins(scene, 1);
    joins(scene, 2);
    for (uint64_t v = 1; v <= 5; v++) {
        asks(scene, 1, BATCH);
        assert_int_equal(commits(scene, 1, v, (v - 1) * BATCH, BATCH), 0);
    }
    for (uint64_t who = 1; who <= 2; who++) {
        assert_false(scene->ended);
        feed(scene, (struct arbiter_event){
                        .kind = ARBITER_DEAD, .incarnation = who, .cause = ARBITER_CAUSE_ENDED});
    }
    assert_true(scene->ended);
    end_scene(scene);
}

/* The process is seen to be dead before it is known how it ended, and its LEAVE is lost. The
 * trained steps are kept until the cause is known, even if another worker has joined, which does
 * not have the model. */
static void who_may_have_ended_well_is_not_dead_before_its_cause_is_known(void **state)
{
    (void)state;
    static const enum arbiter_cause causes[] = {ARBITER_CAUSE_ENDED, ARBITER_CAUSE_OWN,
                                                ARBITER_CAUSE_OUTSIDE, ARBITER_CAUSE_UNKNOWN};
    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++) {
        struct scene *scene = new_scene();
        bool well = causes[i] == ARBITER_CAUSE_ENDED;
        joins(scene, 1);
        joins(scene, 2);
        feed(scene, (struct arbiter_event){
                        .kind = ARBITER_DEAD, .incarnation = 2, .cause = ARBITER_CAUSE_OUTSIDE});
        reports(scene, 1, 0, 0, 0, true);
        for (uint64_t v = 1; v <= 5; v++) {
            asks(scene, 1, BATCH);
            assert_int_equal(commits(scene, 1, v, (v - 1) * BATCH, BATCH), 0);
        }
        joins(scene, 3);
        feed(scene, (struct arbiter_event){
                        .kind = ARBITER_DEAD, .incarnation = 1, .cause = ARBITER_CAUSE_PENDING});
        assert_int_equal(arbiter_version(scene->arbiter), 5);
        assert_int_equal(arbiter_generation(scene->arbiter), 2);
        assert_false(scene->ended);
        feed(scene,
             (struct arbiter_event){.kind = ARBITER_CAUSE, .incarnation = 1, .cause = causes[i]});
        assert_int_equal(scene->ended, well);
        assert_int_equal(arbiter_version(scene->arbiter), well ? 5 : 0);
        assert_int_equal(arbiter_generation(scene->arbiter), well ? 2 : 3);
        end_scene(scene);
    }
}

static void nothing_is_granted_after_a_restart_before_all_have_said_what_they_hold(void **state)
{
    (void)state;
    struct scene *scene = new_scene();
    joins(scene, 1);
    joins(scene, 2);
    asks(scene, 1, BATCH);
    asks(scene, 2, BATCH);
    assert_int_equal(sent_to(scene, 2, WIRE_GRANT)->range.first, BATCH);
    begin(scene, scene->journaled);
    assert_int_equal(arbiter_term(scene->arbiter), 2);
    reports(scene, 1, 0, 0, BATCH, false);
    asks(scene, 1, BATCH);
    assert_null(sent_to(scene, 1, WIRE_GRANT));
    reports(scene, 2, 0, BATCH, BATCH, false);
    assert_int_equal(sent_to(scene, 1, WIRE_GRANT)->range.first, 2 * BATCH);
    end_scene(scene);
}

/* The coordinator is started again after each record that was ever appended: the log, the members
 * and the term are those of the records up to there, and steps that are not committed there can be
 * committed again, once. */
static void a_restart_after_any_record(void **state)
{
    (void)state;
    for (size_t records = 0;; records++) {
        struct scene *scene = new_scene();
        joins(scene, 1);
        joins(scene, 2);
        asks(scene, 1, 20);
        asks(scene, 2, 20);
        assert_int_equal(commits(scene, 1, 1, 0, BATCH), 0);
        assert_int_equal(commits(scene, 2, 2, BATCH, BATCH), 0);
        if (records > scene->journaled) {
            end_scene(scene);
            return;
        }
        uint64_t version = records > 4 ? records - 4 : 0;
        begin(scene, records);
        assert_true(scene->served);
        assert_int_equal(arbiter_version(scene->arbiter), version);
        assert_int_equal(arbiter_generation(scene->arbiter), records >= 3);
        if (records >= 3 && version < 2) {
            reports(scene, 1, version, version * BATCH, BATCH, false);
            reports(scene, 2, version, 0, 0, false);
            assert_int_equal(commits(scene, 1, version + 1, version * BATCH, BATCH), 0);
            assert_int_equal(commits(scene, 1, version + 2, version * BATCH, BATCH), MUSTER_EDATA);
            assert_non_null(strstr(scene->err.text, "step"));
        }
        end_scene(scene);
    }
}

/* Feeds a report of a member that does not know of the newest generation yet. */
static void reports_of(struct scene *scene, uint64_t who, uint64_t generation)
{
    const struct wire_message m = {
        .kind = WIRE_REPORT,
        .report = {.generation = generation, .version = 1, .loaded = true, .closed = true}};
    assert_int_equal(says(scene, who, m), 0);
}

/* The first step of a generation is shared by the members that had the state when it began: all
 * members must be informed of the same members, even if they get OPEN from another coordinator, or
 * if others have loaded the state meanwhile. */
static void a_generation_is_opened_for_all_with_the_same_words(void **state)
{
    (void)state;
    struct scene *scene = new_scene();
    joins(scene, 1);
    joins(scene, 2);
    asks(scene, 1, BATCH);
    assert_int_equal(commits(scene, 1, 1, 0, BATCH), 0);
    joins(scene, 3);
    reports(scene, 1, 1, 0, 0, true);
    reports(scene, 2, 1, 0, 0, true);
    assert_string_equal(sent_to(scene, 1, WIRE_OPEN)->loaded, "110");
    begin(scene, scene->journaled);
    reports_of(scene, 1, 1);
    assert_string_equal(sent_to(scene, 1, WIRE_OPEN)->loaded, "110");
    reports(scene, 3, 1, 0, 0, true); /* 3 has the state now, and closes the generation */
    reports_of(scene, 2, 1);
    assert_string_equal(sent_to(scene, 2, WIRE_OPEN)->loaded, "110");
    end_scene(scene);
}

static void all_die_and_the_log_goes_back_to_the_checkpoint(void **state)
{
    (void)state;
    struct scene *scene = new_scene();
    joins(scene, 1);
    joins(scene, 2);
    asks(scene, 1, BATCH);
    assert_int_equal(commits(scene, 1, 1, 0, BATCH), 0);
    struct wire_message saves = {
        .kind = WIRE_CHECKPOINT,
        .checkpoint = {.generation = 1, .version = 1, .path = {"model", 5}, .digest = {7}}};
    assert_int_equal(says(scene, 1, saves), 0);
    asks(scene, 1, BATCH);
    assert_int_equal(commits(scene, 1, 2, BATCH, BATCH), 0);
    feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 1});
    feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 2});
    joins(scene, 3);
    assert_true(sent_to(scene, 3, WIRE_OPEN)->restore);
    assert_int_equal(sent_to(scene, 3, WIRE_OPEN)->version, 1);
    asks(scene, 3, BATCH);
    assert_int_equal(sent_to(scene, 3, WIRE_GRANT)->range.first, BATCH);
    begin(scene, scene->journaled);
    assert_int_equal(arbiter_version(scene->arbiter), 1);
    end_scene(scene);
}

/* The others report that they have lost worker 3: it has been silent to them for 0.9 s already. */
static void who_alone_is_late_and_was_lost_is_waited_for_shortly(void **state)
{
    (void)state;
    struct scene *scene = new_scene();
    const struct wire_message lost = {
        .kind = WIRE_REPORT,
        .report = {.generation = 2, .lost = 3, .closed = true, .loaded = true}};
    joins(scene, 1);
    joins(scene, 2);
    joins(scene, 3);
    reports(scene, 1, 0, 0, 0, true);
    reports(scene, 2, 0, 0, 0, true);
    assert_int_equal(arbiter_generation(scene->arbiter), 2);
    assert_int_equal(says(scene, 1, lost), 0);
    assert_int_equal(arbiter_next_ms(scene->arbiter), scene->now_ms + ARBITER_DEADLINE_MS);
    assert_int_equal(says(scene, 2, lost), 0);
    scene->now_ms += ARBITER_MISSED_MS;
    assert_int_equal(arbiter_next_ms(scene->arbiter), scene->now_ms);
    feed(scene, (struct arbiter_event){.kind = ARBITER_TICK});
    assert_int_equal(arbiter_generation(scene->arbiter), 3);
    assert_int_equal(scene->lost, 3);
    assert_int_equal(scene->reason, RENDEZVOUS_SILENT);
    end_scene(scene);
}

/* The coordinator and its members end at the same time, and others join. */
static void who_is_gone_in_the_next_term_is_not_waited_for(void **state)
{
    (void)state;
    struct scene *scene = new_scene();
    joins(scene, 1);
    joins(scene, 2);
    asks(scene, 1, BATCH);
    assert_int_equal(commits(scene, 1, 1, 0, BATCH), 0);
    begin(scene, scene->journaled);
    joins(scene, 3);
    assert_null(sent_to(scene, 3, WIRE_OPEN));
    feed(scene, (struct arbiter_event){.kind = ARBITER_GONE, .incarnation = 1});
    feed(scene, (struct arbiter_event){.kind = ARBITER_GONE, .incarnation = 9});
    assert_null(sent_to(scene, 3, WIRE_OPEN)); /* the other one may have the model */
    feed(scene, (struct arbiter_event){.kind = ARBITER_GONE, .incarnation = 2});
    assert_true(sent_to(scene, 3, WIRE_OPEN)->restore);
    assert_int_equal(sent_to(scene, 3, WIRE_OPEN)->version, 0);
    end_scene(scene);
}

/* The workers may have ended when the last step was acknowledged: nothing is trained again. */
static void who_is_gone_after_the_last_step_has_ended_well(void **state)
{
    (void)state;
    struct scene *scene = new_scene();
    joins(scene, 1);
    joins(scene, 2);
    for (uint64_t step = 1; step <= 20 / BATCH; step++) {
        asks(scene, 1, BATCH);
        assert_int_equal(commits(scene, 1, step, (step - 1) * BATCH, BATCH), 0);
    }
    begin(scene, scene->journaled);
    feed(scene, (struct arbiter_event){.kind = ARBITER_GONE, .incarnation = 1});
    assert_false(scene->ended);
    feed(scene, (struct arbiter_event){.kind = ARBITER_GONE, .incarnation = 2});
    assert_true(scene->ended);
    end_scene(scene);
}

static void who_is_silent_for_a_lease_is_given_up(void **state)
{
    (void)state;
    struct scene *scene = new_scene();
    joins(scene, 1);
    joins(scene, 2);
    asks(scene, 2, BATCH);
    scene->now_ms = SHARD_LEASE_MS / 2;
    reports(scene, 1, 0, 0, 0, false);
    assert_int_equal(arbiter_next_ms(scene->arbiter), SHARD_LEASE_MS);
    scene->now_ms = SHARD_LEASE_MS;
    scene->sent_count = 0;
    feed(scene, (struct arbiter_event){.kind = ARBITER_TICK});
    assert_non_null(sent_to(scene, 1, WIRE_CLOSE));
    reports(scene, 1, 0, 0, 0, true);
    assert_int_equal(sent_to(scene, 1, WIRE_OPEN)->members, 1);
    assert_int_equal(scene->lost, 2);
    assert_int_equal(scene->reason, RENDEZVOUS_SILENT); /* its process may exist, but be stopped */
    asks(scene, 1, BATCH);
    assert_int_equal(sent_to(scene, 1, WIRE_GRANT)->range.first, 0);
    end_scene(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_announced_is_in_the_journal),
        cmocka_unit_test(the_end_is_in_the_ledger),
        cmocka_unit_test(who_ended_well_needs_not_have_said_so),
        cmocka_unit_test(who_may_have_ended_well_is_not_dead_before_its_cause_is_known),
        cmocka_unit_test(nothing_is_granted_after_a_restart_before_all_have_said_what_they_hold),
        cmocka_unit_test(a_restart_after_any_record),
        cmocka_unit_test(a_generation_is_opened_for_all_with_the_same_words),
        cmocka_unit_test(all_die_and_the_log_goes_back_to_the_checkpoint),
        cmocka_unit_test(who_alone_is_late_and_was_lost_is_waited_for_shortly),
        cmocka_unit_test(who_is_gone_in_the_next_term_is_not_waited_for),
        cmocka_unit_test(who_is_gone_after_the_last_step_has_ended_well),
        cmocka_unit_test(who_is_silent_for_a_lease_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
