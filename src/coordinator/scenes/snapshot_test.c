/* The arbiter in small scenes: the journal as one snapshot, and bytes in it that are wrong. */
#include "coordinator/scenes/fixture.h"

/* After each step of a job, the snapshot gives the same state as the records. */
static void a_snapshot_takes_the_place_of_all_records(void **state)
{
    (void)state;
    static const struct wire_dataset late = {{"late", 4}, .records = 5, .epochs = 1, .batch = 5};
    struct wire_message saves = {.kind = WIRE_CHECKPOINT,
                                 .checkpoint = {.path = {"model", 5}, .digest = {7}}};
    for (uint64_t at = 0; at <= 2; at++) {
        struct scene *scene = planned_scene();
        for (uint64_t v = 1; v <= at; v++) {
            assert_int_equal(commits(scene, 1, v, 8 * (v - 1), 8), 0);
        }
        if (at > 0) {
            declares(scene, 1, late);
            saves.checkpoint.generation = saves.checkpoint.version = 1;
            assert_int_equal(says(scene, 1, saves), 0);
        }
        compacts(scene);
        begin(scene, scene->journaled);
        assert_int_equal(arbiter_term(scene->arbiter), 2);
        assert_int_equal(arbiter_version(scene->arbiter), at);
        assert_int_equal(arbiter_generation(scene->arbiter), 1);
        reports(scene, 1, at, 0, 0, false);
        reports(scene, 2, at, 0, 0, false);
        assert_int_equal(commits(scene, 2, at + 1, 8 * at, at == 2 ? 6 : 8), 0);
        assert_int_equal(sent_to(scene, 2, WIRE_ACK)->version, at + 1);
        declares(scene, 1, late);
        assert_int_equal(sent_to(scene, 1, WIRE_DATASET)->dataset.number, 1);
        feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 1});
        feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 2});
        joins(scene, 3);
        assert_int_equal(sent_to(scene, 3, WIRE_OPEN)->version, at > 0);
        begin(scene, scene->journaled); /* a snapshot, and records after it */
        assert_int_equal(arbiter_version(scene->arbiter), at > 0);
        end_scene(scene);
    }
}

/* All members have died and no worker has joined: work by leases may fill the journal until then.
 */
static void a_journal_is_compacted_while_nobody_trains(void **state)
{
    (void)state;
    struct scene *scene = planned_scene();
    assert_int_equal(commits(scene, 1, 1, 0, 8), 0);
    feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 1});
    feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = 2});
    assert_false(arbiter_may_compact(scene->arbiter)); /* a recovery is not held up */
    scene->now_ms += ARBITER_DEADLINE_MS;
    feed(scene, (struct arbiter_event){.kind = ARBITER_TICK});
    compacts(scene);
    joins(scene, 3);
    assert_true(sent_to(scene, 3, WIRE_OPEN)->restore);
    assert_int_equal(commits(scene, 3, 1, 0, 8), 0);
    begin(scene, scene->journaled);
    assert_int_equal(arbiter_generation(scene->arbiter), 2);
    assert_int_equal(arbiter_version(scene->arbiter), 1);
    end_scene(scene);
}

/* A snapshot that a disk has changed is refused with an error text, or has another meaning. */
static void a_snapshot_with_a_wrong_byte(void **state)
{
    (void)state;
    struct scene *scene = planned_scene();
    assert_int_equal(commits(scene, 1, 1, 0, 8), 0);
    compacts(scene);
    size_t count = scene->journal[0].count, refused = 0;
    uint8_t *bytes = scene->journal[0].bytes;
    const struct arbiter_options options = {
        .sizes = {1, 4, 2}, .peers = 8, .lease_ms = SHARD_LEASE_MS};
    for (size_t i = 0; i < count; i++) {
        for (int cut = 0; cut < 2; cut++) {
            uint8_t was = bytes[i];
            bytes[i] = (uint8_t)(was ^ (cut ? 0 : 0xff));
            const struct arbiter_event event = {.kind = ARBITER_REPLAY,
                                                .record = ENTRY_SNAPSHOT,
                                                .bytes = bytes,
                                                .count = cut ? i : count};
            struct muster_err err = MUSTER_ERR_INIT;
            struct arbiter *another;
            assert_int_equal(arbiter_new(&options, &another, &err), 0);
            int r = arbiter_step(another, &event, &scene->effects, &err);
            assert_true(r == 0 || strlen(err.text) > 0);
            refused += r < 0;
            arbiter_free(another);
            bytes[i] = was;
        }
    }
    assert_true(refused > count / 2);
    end_scene(scene);
}

/* The journal comes from a disk: a record that is not valid is refused with an error text. */
static void records_that_are_none_of_ours(void **state)
{
    (void)state;
    static const uint8_t bytes[100] = {1, 2, 3};
    for (uint32_t kind = 0; kind <= ENTRY_KINDS; kind++) {
        if (kind == ENTRY_END) {
            continue;
        }
        struct scene *scene = new_scene();
        const struct arbiter_event event = {
            .kind = ARBITER_REPLAY, .record = kind, .bytes = bytes, .count = sizeof bytes};
        assert_true(arbiter_step(scene->arbiter, &event, &scene->effects, &scene->err) < 0);
        assert_true(strlen(scene->err.text) > 0);
        end_scene(scene);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_snapshot_takes_the_place_of_all_records),
        cmocka_unit_test(a_journal_is_compacted_while_nobody_trains),
        cmocka_unit_test(a_snapshot_with_a_wrong_byte),
        cmocka_unit_test(records_that_are_none_of_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
