/* Each mistake that is planted into the driver is found: by a scene, or by the first random run
 * that meets it. Without one, neither scenes nor seeds find anything (driver_test.c). */
#include "base/testing/test.h"
#include "controller/planted.h"
#include "scenes.h"

enum planted_driver planted_driver;

enum { SEEDS = 300, RESYNC_MS = 3600000 };

/* Returns the seed that found it; 0: none did. */
static uint64_t seek(enum planted_driver mistake)
{
    planted_driver = mistake;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const char *broken = chaos_run(seed, 0, false);
        if (broken) {
            print_message("seed %llu: %s\n", (unsigned long long)seed, broken);
            return seed;
        }
    }
    return 0;
}

#define SCENE_FINDS(mistake, scene)                                                                \
    static void finds_##mistake(void **state)                                                      \
    {                                                                                              \
        (void)state;                                                                               \
        planted_driver = PLANTED_##mistake;                                                        \
        assert_non_null(scene_##scene());                                                          \
    }
#define FINDS(mistake)                                                                             \
    static void finds_##mistake(void **state)                                                      \
    {                                                                                              \
        (void)state;                                                                               \
        assert_true(seek(PLANTED_##mistake) > 0);                                                  \
    }
SCENE_FINDS(NO_LOOK, suspended)
SCENE_FINDS(TAKEN_IS_DONE, taken_name)
SCENE_FINDS(BLIND_STATUS, two_drivers)
SCENE_FINDS(DELETE_BY_NAME, name_passed_on)
FINDS(UNSEEN_STAYS)
FINDS(LISTED_IS_UNSEEN)
FINDS(END_UNSEEN)
SCENE_FINDS(NO_RETRY, refused)
SCENE_FINDS(NOT_AWAITED, slow_watches)
SCENE_FINDS(NO_NODE_LOOK, node_back)

/* If an event is missed nevertheless, the next resync finds it: a job ends although its event never
 * came. */
static void a_resync_finds_what_was_missed(void **state)
{
    (void)state;
    uint64_t seed = seek(PLANTED_END_UNSEEN);
    assert_true(seed > 0);
    assert_null(chaos_run(seed, RESYNC_MS, false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_NO_LOOK),
        cmocka_unit_test(finds_TAKEN_IS_DONE),
        cmocka_unit_test(finds_BLIND_STATUS),
        cmocka_unit_test(finds_DELETE_BY_NAME),
        cmocka_unit_test(finds_UNSEEN_STAYS),
        cmocka_unit_test(finds_LISTED_IS_UNSEEN),
        cmocka_unit_test(finds_END_UNSEEN),
        cmocka_unit_test(finds_NO_RETRY),
        cmocka_unit_test(finds_NOT_AWAITED),
        cmocka_unit_test(finds_NO_NODE_LOOK),
        cmocka_unit_test(a_resync_finds_what_was_missed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
