/* Checks that a communicator opens, closes and quiesces once each, by one of the threads that
 * try. */
#include "comm/state/phase.h"

#include <muster/err.h>

#include "base/testing/test.h"
#include "base/testing/test_assert.h"

#include <pthread.h>

static void the_first_code_stays(void **state)
{
    (void)state;
    struct comm_life life;
    phase_init(&life);
    assert_int_equal(phase_of(&life), COMM_FORMING);
    assert_int_equal(phase_code(&life), 0);
    phase_open(&life);
    assert_int_equal(atomic_load(&life.word), 0);
    assert_true(phase_close(&life, COMM_CLOSING, MUSTER_EPEERDEAD));
    assert_false(phase_close(&life, COMM_LEAVING, MUSTER_EABORTED));
    assert_int_equal(phase_code(&life), MUSTER_EPEERDEAD);
    assert_false(phase_is_quiesced(&life));
    phase_quiesce(&life);
    assert_true(phase_is_quiesced(&life) && !phase_is_leaving(&life));
    assert_int_equal(phase_code(&life), MUSTER_EPEERDEAD);
}

static void who_leaves_in_good_order_has_left(void **state)
{
    (void)state;
    struct comm_life life;
    phase_init(&life);
    phase_open(&life);
    assert_true(phase_close(&life, COMM_LEAVING, MUSTER_EABORTED));
    assert_true(phase_is_leaving(&life));
    phase_quiesce(&life);
    assert_true(phase_is_quiesced(&life) && phase_is_leaving(&life));
}

static void no_phase_comes_back(void **state)
{
    (void)state;
    bool reached[COMM_PHASES] = {[COMM_FORMING] = true};
    for (int turn = 0; turn < COMM_PHASES; turn++) {
        for (int from = 0; from < COMM_PHASES; from++) {
            for (int to = 0; to < COMM_PHASES; to++) {
                bool may = phase_may((enum comm_phase)from, (enum comm_phase)to);
                assert_true(!may || !phase_may((enum comm_phase)to, (enum comm_phase)from));
                reached[to] = reached[to] || (reached[from] && may);
            }
        }
    }
    for (int phase = 0; phase < COMM_PHASES; phase++) {
        assert_true(reached[phase]);
        assert_false(phase_may((enum comm_phase)phase, COMM_FORMING));
    }
}

static void *close_it(void *life)
{
    return phase_close(life, COMM_CLOSING, MUSTER_EABORTED) ? life : NULL;
}

static void one_of_several_threads_closes_it(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    struct comm_life life;
    pthread_t threads[THREADS];
    int closed = 0;
    phase_init(&life);
    phase_open(&life);
    for (int t = 0; t < THREADS; t++) {
        assert_int_equal(pthread_create(&threads[t], NULL, close_it, &life), 0);
    }
    for (int t = 0; t < THREADS; t++) {
        void *ret;
        pthread_join(threads[t], &ret);
        closed += ret != NULL;
    }
    assert_int_equal(closed, 1);
}

static void close_before_it_is_open(void)
{
    struct comm_life life;
    phase_init(&life);
    (void)phase_close(&life, COMM_CLOSING, MUSTER_EABORTED);
}

static void quiesce_what_is_open(void)
{
    struct comm_life life;
    phase_init(&life);
    phase_open(&life);
    phase_quiesce(&life);
}

static void quiesce_twice(void)
{
    struct comm_life life;
    phase_init(&life);
    phase_open(&life);
    (void)phase_close(&life, COMM_CLOSING, MUSTER_EABORTED);
    phase_quiesce(&life);
    phase_quiesce(&life);
}

static void what_the_table_lacks_is_asserted(void **state)
{
    (void)state;
    assert_true(test_is_asserted(close_before_it_is_open));
    assert_true(test_is_asserted(quiesce_what_is_open));
    assert_true(test_is_asserted(quiesce_twice));
}

static void a_call_of_several_ends_within_them(void **state)
{
    (void)state;
    _Atomic int use = COMM_OUTSIDE;
    use_enter(&use, COMM_IN_SEVERAL);
    use_enter(&use, COMM_IN_CALL);
    assert_int_equal(use, COMM_IN_CALL_OF_SEVERAL);
    use_enter(&use, COMM_IN_CALL); /* a fast path that continues as a task */
    use_leave(&use, COMM_IN_CALL);
    assert_int_equal(use, COMM_IN_SEVERAL);
    use_leave(&use, COMM_IN_SEVERAL);
    assert_int_equal(use, COMM_OUTSIDE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_code_stays),
        cmocka_unit_test(who_leaves_in_good_order_has_left),
        cmocka_unit_test(no_phase_comes_back),
        cmocka_unit_test(one_of_several_threads_closes_it),
        cmocka_unit_test(what_the_table_lacks_is_asserted),
        cmocka_unit_test(a_call_of_several_ends_within_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
