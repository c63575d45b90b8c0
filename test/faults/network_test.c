/* Faults between hosts, each a network namespace: a killed rank is named whatever its memory, a cut
 * cable is a suspicion, and a slow or lossy network is neither. */
#include "network.h"
#include "scene.h"

#include "base/test.h"

#include <stdio.h>

enum { MIB = 1024 * 1024 };

static void a_killed_rank_is_named(void **state)
{
    (void)state;
    static const size_t memory[] = {0, 512 * (size_t)MIB}, counts[] = {2, 100000};
    for (int i = 0; i < 4; i++) {
        struct scene scene = {.size = 3,
                              .networks = true,
                              .count = counts[i % 2],
                              .memory_bytes = memory[i / 2],
                              .fault = SCENE_KILL};
        assert_int_equal(scene_run(&scene), 0);
        assert_true(scene_is_consistent(&scene));
        for (int r = 0; r < 2; r++) {
            const struct scene_note *note = scene_note(r);
            if (note->about != 2 || note->victim != MUSTER_PEER_DEAD || note->wrong) {
                fail_msg("rank %d: %d about %d, state %d: %s", r, note->code, note->about,
                         (int)note->victim, note->text);
            }
        }
    }
}

static void suspected(enum scene_fault fault)
{
    struct scene scene = {
        .size = 3, .networks = true, .count = 1000, .fault = fault, .silence_ms = 500};
    assert_int_equal(scene_run(&scene), 0);
    assert_true(scene_is_consistent(&scene));
    for (int r = 0; r < 2; r++) {
        const struct scene_note *note = scene_note(r);
        if (note->about != 2 || note->victim != MUSTER_PEER_SUSPECTED || note->wrong ||
            note->disturbed) {
            fail_msg("rank %d: %d about %d, state %d, disturbed %d: %s", r, note->code, note->about,
                     (int)note->victim, note->disturbed, note->text);
        }
    }
    /* Cut off from the others it comes to the same conclusion. */
    assert_int_not_equal(scene_note(2)->code, 0);
}

static void a_cut_cable_is_a_suspicion(void **state)
{
    (void)state;
    suspected(SCENE_CUT);
}

static void a_stopped_rank_is_expelled(void **state)
{
    (void)state;
    suspected(SCENE_STOP);
}

static void results_stay_right(const struct scene *scene)
{
    assert_int_equal(scene_run(scene), 0);
    for (int r = 0; r < scene->size; r++) {
        const struct scene_note *note = scene_note(r);
        if (note->code != 0 || note->wrong || note->rounds == 0) {
            fail_msg("rank %d: %d after %llu rounds, wrong %d: %s", r, note->code,
                     (unsigned long long)note->rounds, note->wrong, note->text);
        }
    }
}

static void a_slow_network_is_no_fault(void **state)
{
    (void)state;
    const struct scene scene = {.size = 3,
                                .networks = true,
                                .count = 50000,
                                .for_ms = 4000,
                                .rate = "20mbit",
                                .latency = "400ms"};
    results_stay_right(&scene);
}

static void a_lossy_network_is_no_fault(void **state)
{
    (void)state;
    const struct scene scene = {
        .size = 3, .networks = true, .count = 5000, .for_ms = 4000, .loss = 0.1};
    results_stay_right(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_rank_is_named),      cmocka_unit_test(a_cut_cable_is_a_suspicion),
        cmocka_unit_test(a_stopped_rank_is_expelled),  cmocka_unit_test(a_slow_network_is_no_fault),
        cmocka_unit_test(a_lossy_network_is_no_fault),
    };
    if (!network_open()) {
        (void)puts("skipped: network namespaces need root and ip(8)");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
