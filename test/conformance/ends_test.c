/* How a world judges the ends of its ranks: a kill is a failure unless the test named its rank. */
#include "world.h"

#include "base/testing/test.h"

#include <signal.h>

/* The last rank is killed. */
static int kills_the_last(struct muster_comm *comm, void *context)
{
    (void)context;
    if (muster_comm_rank(comm) == muster_comm_size(comm) - 1) {
        (void)raise(SIGKILL);
    }
    return 0;
}

static int does_nothing(struct muster_comm *comm, void *context)
{
    (void)context;
    return comm == NULL;
}

static int fails(struct muster_comm *comm, void *context)
{
    (void)context;
    return muster_comm_rank(comm) == 0;
}

static int run(const char *transport, world_fn fn, uint64_t killed, uint64_t may_be_killed)
{
    struct world w = {.kind = WORLD_PROCESSES,
                      .size = 3,
                      .transport = transport,
                      .killed = killed,
                      .may_be_killed = may_be_killed};
    return world_run(&w, fn, NULL);
}

static void only_a_kill_that_was_named_counts(void **state)
{
    assert_int_equal(run(*state, kills_the_last, 0, 0), 1);
    assert_int_equal(run(*state, kills_the_last, WORLD_RANK(1), 0), 2);
    assert_int_equal(run(*state, kills_the_last, WORLD_RANK(2), 0), 0);
    assert_int_equal(run(*state, kills_the_last, 0, WORLD_RANK(2)), 0);
    assert_int_equal(run(*state, kills_the_last, 0, WORLD_RANK(0) | WORLD_RANK(1)), 1);
}

static void who_was_to_be_killed_may_not_live(void **state)
{
    assert_int_equal(run(*state, does_nothing, 0, 0), 0);
    assert_int_equal(run(*state, does_nothing, WORLD_RANK(2), 0), 1);
    assert_int_equal(run(*state, does_nothing, 0, WORLD_RANK(2)), 0);
}

static void a_failure_is_one(void **state)
{
    assert_int_equal(run(*state, fails, 0, 0), 1);
    assert_int_equal(run(*state, fails, 0, WORLD_RANK(0)), 1);
}

int main(int argc, char **argv)
{
    void *transport = argc > 1 ? argv[1] : "shm";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(only_a_kill_that_was_named_counts, transport),
        cmocka_unit_test_prestate(who_was_to_be_killed_may_not_live, transport),
        cmocka_unit_test_prestate(a_failure_is_one, transport),
    };
    return cmocka_run_group_tests_name(transport, tests, NULL, NULL);
}
