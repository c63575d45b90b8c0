/* The arbiter in small scenes: workers that would compute other bits are refused. */
#include "coordinator/scenes/fixture.h"

static void joins_with(struct scene *scene, uint64_t who, uint64_t environment)
{
    const struct wire_message join = {.kind = WIRE_JOIN, .join.environment = environment};
    assert_int_equal(says(scene, who, join), 0);
}

/* A joiner is refused if it computes other bits than the members do. These may be members of an
 * earlier coordinator, which do not report their environment when they come back. A joiner without
 * the requirement is not refused. The journal has the environment once. */
static void the_environment_is_in_the_journal(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) {
        struct scene *scene = new_scene();
        joins_with(scene, 1, 7);
        assert_int_equal(scene->journaled, 2);
        joins_with(scene, 2, 7);
        assert_int_equal(scene->journal[scene->journaled - 1].kind, ENTRY_ENVIRONMENT);
        if (how > 0) {
            begin(scene, scene->journaled);
            reports(scene, 1, 0, 0, 0, false);
            reports(scene, 2, 0, 0, 0, false);
        }
        if (how > 1) {
            compacts(scene);
            begin(scene, scene->journaled);
            reports(scene, 1, 0, 0, 0, false);
            reports(scene, 2, 0, 0, 0, false);
        }
        size_t journaled = scene->journaled;
        joins_with(scene, 3, 8);
        assert_non_null(sent_to(scene, 3, WIRE_REFUSED));
        assert_int_equal(scene->hung_up, 3);
        joins_with(scene, 4, 7);
        assert_null(sent_to(scene, 4, WIRE_REFUSED));
        joins_with(scene, 5, 0);
        assert_null(sent_to(scene, 5, WIRE_REFUSED));
        reports(scene, 1, 0, 0, 0, true);
        reports(scene, 2, 0, 0, 0, true);
        for (size_t i = journaled; i < scene->journaled; i++) {
            assert_int_not_equal(scene->journal[i].kind, ENTRY_ENVIRONMENT);
        }
        end_scene(scene);
    }
}

/* A changed journal may have no number, a second one, or half of one. */
static void an_environment_is_one_number(void **state)
{
    (void)state;
    static const uint8_t seven[9] = {7}, none[8] = {0};
    const struct {
        const uint8_t *bytes;
        size_t count;
        int expected;
    } records[] = {
        {seven, 8, 0}, {none, 8, MUSTER_EDATA}, {seven, 9, MUSTER_EDATA}, {seven, 7, MUSTER_EDATA}};
    const struct arbiter_options options = {
        .sizes = {1, 4, 2}, .peers = 8, .lease_ms = SHARD_LEASE_MS, .first_ms = SHARD_LEASE_MS};
    for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
        struct arbiter *arbiter = NULL;
        struct arbiter_effects effects;
        const struct arbiter_event event = {.kind = ARBITER_REPLAY,
                                            .record = ENTRY_ENVIRONMENT,
                                            .bytes = records[i].bytes,
                                            .count = records[i].count};
        arbiter_effects_init(&effects);
        assert_int_equal(arbiter_new(&options, &arbiter, NULL), 0);
        assert_int_equal(arbiter_step(arbiter, &event, &effects, NULL), records[i].expected);
        if (records[i].expected == 0) {
            assert_int_equal(arbiter_step(arbiter, &event, &effects, NULL), MUSTER_EDATA);
        }
        arbiter_free(arbiter);
        arbiter_effects_done(&effects);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_is_in_the_journal),
        cmocka_unit_test(an_environment_is_one_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
