/* The arbiter in small scenes: workers that are lost or do not come back, and the reports about
 * them. */
#include "coordinator/scenes/fixture.h"

static void ticks(struct scene *scene, int64_t ms)
{
    for (int64_t end = scene->now_ms + ms; scene->now_ms < end;) {
        scene->now_ms += 1000;
        says(scene, 1, (struct wire_message){.kind = WIRE_PROGRESS});
        says(scene, 2, (struct wire_message){.kind = WIRE_PROGRESS});
        feed(scene, (struct arbiter_event){.kind = ARBITER_TICK});
    }
}

/* A pass may take 20 times the usual 2 s; then its worker is expelled, because the other one
 * waits. */
static void who_does_not_come_back_is_expelled(void **state)
{
    (void)state;
    struct scene *scene = planned_scene();
    for (int i = 0; i < 3; i++) {
        has_at_hand(scene, 1, 0, 4);
        has_at_hand(scene, 2, 4, 4);
        ticks(scene, 2000);
        has_at_hand(scene, 1, 0, 0);
        has_at_hand(scene, 2, 0, 0);
    }
    has_at_hand(scene, 1, 0, 4);
    has_at_hand(scene, 2, 4, 4);
    ticks(scene, 60000); /* both compute: neither waits */
    assert_int_equal(scene->hangs, 0);
    has_at_hand(scene, 1, 0, 0);
    has_at_hand(scene, 2, 0, 0);
    has_at_hand(scene, 2, 4, 4);
    ticks(scene, 39000);
    assert_int_equal(scene->hangs, 0);
    ticks(scene, 1000);
    assert_int_equal(scene->hangs, 2);
    assert_string_equal(sent_to(scene, 2, WIRE_EXPELLED)->why,
                        "its step function has not come back for 40 s, while others waited: 4 "
                        "records from position 4 of epoch 1");
    assert_non_null(sent_to(scene, 1, WIRE_CLOSE));
    reports(scene, 1, 0, 0, 0, true);
    assert_int_equal(sent_to(scene, 1, WIRE_OPEN)->range.first, 4); /* suspected */
    assert_string_equal(scene->failure, "");
    end_scene(scene);
}

static void a_first_pass_may_take_long(void **state)
{
    (void)state;
    struct scene *scene = planned_scene();
    has_at_hand(scene, 2, 4, 4);
    ticks(scene, 119000);
    assert_int_equal(scene->hangs, 0);
    ticks(scene, 1000);
    assert_int_equal(scene->hangs, 2);
    end_scene(scene);
}

/* A compiled model is compiled again for the last, smaller micro-batch of an epoch. */
static void a_pass_of_another_size_may_take_long(void **state)
{
    (void)state;
    struct scene *scene = planned_scene();
    has_at_hand(scene, 2, 4, 4);
    ticks(scene, 1000);
    has_at_hand(scene, 2, 20, 2);
    ticks(scene, 119000);
    assert_int_equal(scene->hangs, 0);
    ticks(scene, 1000);
    assert_int_equal(scene->hangs, 2);
    end_scene(scene);
}

static void sizes_between_those_that_were_met_are_not_new(void **state)
{
    (void)state;
    struct scene *scene = planned_scene();
    has_at_hand(scene, 2, 4, 4);
    ticks(scene, 1000);
    has_at_hand(scene, 2, 20, 2);
    ticks(scene, 1000);
    has_at_hand(scene, 2, 4, 3);
    ticks(scene, 19000);
    assert_int_equal(scene->hangs, 0);
    ticks(scene, 1000);
    assert_int_equal(scene->hangs, 2);
    end_scene(scene);
}

static void a_first_pass_may_take_the_most_that_any_may(void **state)
{
    (void)state;
    pass_max_ms = 60000;
    struct scene *scene = planned_scene();
    pass_max_ms = 0;
    has_at_hand(scene, 2, 4, 4);
    ticks(scene, 59000);
    assert_int_equal(scene->hangs, 0);
    ticks(scene, 1000);
    assert_int_equal(scene->hangs, 2);
    end_scene(scene);
}

static void expect_loss(const struct scene *scene, uint64_t count, const char *name)
{
    const struct losses *losses = arbiter_losses(scene->arbiter);
    assert_int_equal(losses->count, count);
    assert_string_equal(losses->list[losses->kept - 1].name, name);
    assert_int_equal(losses->list[losses->kept - 1].reason, RENDEZVOUS_DIED);
}

/* The losses are also known after a restart, and from a compacted journal. */
static void who_was_lost_is_in_the_journal(void **state)
{
    (void)state;
    struct scene *scene = new_scene();
    joins_as(scene, 1, (struct wire_text){"one", 3});
    joins_as(scene, 2, (struct wire_text){"t\033wo", 4});
    feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 2});
    reports(scene, 1, 0, 0, 0, true);
    expect_loss(scene, 1, "t?wo");
    begin(scene, scene->journaled);
    expect_loss(scene, 1, "t?wo");
    assert_string_equal(arbiter_name(scene->arbiter, 1), "one");
    reports(scene, 1, 0, 0, 0, false);
    compacts(scene);
    begin(scene, scene->journaled);
    expect_loss(scene, 1, "t?wo");
    assert_string_equal(arbiter_name(scene->arbiter, 1), "one");
    end_scene(scene);
}

static void enrolls(struct scene *scene, uint64_t who)
{
    const struct wire_message enroll = {
        .kind = WIRE_ENROLL,
        .enroll = {.dataset = {.name = {"b", 1}, .records = 8, .epochs = 1, .batch = 4},
                   .name = {"two", 3},
                   .sums = {"", 0}}};
    assert_int_equal(says(scene, who, enroll), 0);
}

/* The loss is reported once, whichever of the two incarnations is lost first. */
static void a_process_that_trains_and_works_by_leases_is_one_loss(void **state)
{
    (void)state;
    const uint64_t leaser = INCARNATION_LEASES | UINT64_C(3) << 48 | 2;
    for (int leaser_first = 0; leaser_first < 2; leaser_first++) {
        struct scene *scene = new_scene();
        joins_as(scene, 1, (struct wire_text){"one", 3});
        joins_as(scene, 2, (struct wire_text){"two", 3});
        enrolls(scene, leaser);
        if (leaser_first) {
            feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = leaser});
        }
        feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 2});
        reports(scene, 1, 0, 0, 0, true);
        feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = leaser});
        expect_loss(scene, 1, "two");
        assert_int_equal(scene->told, 1 + leaser_first); /* it reports that 2 is out */
        begin(scene, scene->journaled);
        expect_loss(scene, 1, "two");
        joins_as(scene, UINT64_C(1) << 48 | 1, (struct wire_text){"one", 3});
        reports(scene, 1, 0, 0, 0, true);
        feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 1});
        reports(scene, UINT64_C(1) << 48 | 1, 0, 0, 0, true);
        expect_loss(scene, 2, "one"); /* two that train are two losses, even in one program */
        end_scene(scene);
    }
}

static void the_last_losses_are_kept_and_all_are_counted(void **state)
{
    (void)state;
    struct losses losses = {0}, again = {0};
    struct buf record;
    buf_init(&record, 1 << 10);
    for (uint64_t i = 1; i <= LOSSES_KEPT + 6; i++) {
        losses_add(&losses, &(struct loss){.incarnation = i, .reason = RENDEZVOUS_SILENT});
    }
    for (size_t i = 0; i < losses.kept; i++) {
        buf_clear(&record);
        losses_write(&losses, i, &record);
        assert_int_equal(losses_read(&again, (uint8_t *)record.data, record.used, NULL), 0);
    }
    assert_int_equal(again.count, LOSSES_KEPT + 6);
    assert_memory_equal(again.list, losses.list, sizeof losses.list);
    /* the same loss does not follow the last one; then, the record ends too early */
    assert_int_equal(losses_read(&again, (uint8_t *)record.data, record.used, NULL), MUSTER_EDATA);
    again.count = 0;
    assert_int_equal(losses_read(&again, (uint8_t *)record.data, record.used - 1, NULL),
                     MUSTER_EDATA);
    buf_done(&record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_does_not_come_back_is_expelled),
        cmocka_unit_test(a_first_pass_may_take_long),
        cmocka_unit_test(a_pass_of_another_size_may_take_long),
        cmocka_unit_test(sizes_between_those_that_were_met_are_not_new),
        cmocka_unit_test(a_first_pass_may_take_the_most_that_any_may),
        cmocka_unit_test(who_was_lost_is_in_the_journal),
        cmocka_unit_test(a_process_that_trains_and_works_by_leases_is_one_loss),
        cmocka_unit_test(the_last_losses_are_kept_and_all_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
