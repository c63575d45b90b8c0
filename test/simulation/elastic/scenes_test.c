/* Single orders of events that once went wrong, as they were found. */
#include "base/testing/test.h"
#include "world.h"

static bool may(const struct world *world, enum action_kind kind, size_t who)
{
    struct action actions[ACTIONS_MAX];
    size_t count = world_actions(world, actions);
    for (size_t i = 0; i < count; i++) {
        if (actions[i].kind == kind && actions[i].who == who) {
            return true;
        }
    }
    return false;
}

static void happens(struct world *world, enum action_kind kind, size_t who)
{
    struct action action = {(uint8_t)kind, (uint8_t)who, 0};
    if (!may(world, kind, who)) {
        fail_msg("process %zu: \"%s\" cannot happen now", who, world_action_name(action));
    }
    world_act(world, action);
    if (world->broken) {
        fail_msg("%s", world->broken);
    }
}

/* Runs until process 0 has passed the barrier of the only step, and process 1 may pass it. */
static void one_has_passed(struct world *world)
{
    const struct world_config config = {
        .processes = 2, .records = 1, .ahead = 1, .batch = 1, .formed = true};
    world_init(world, &config);
    happens(world, ACT_GRANT, 0);
    happens(world, ACT_HEAR, 0);
    happens(world, ACT_ENTER, 0);
    happens(world, ACT_ENTER, 1);
    happens(world, ACT_REDUCE, 0);
    happens(world, ACT_REDUCE, 1);
    happens(world, ACT_PASS, 0);
}

/* Process 0 makes the step durable before process 1 has applied it: then the ACK means nothing to
 * process 1. When process 1 brings the step itself, it gets another ACK, and it can end without a
 * recovery. */
static void an_acknowledgement_that_came_too_early_comes_again(void **state)
{
    (void)state;
    static struct world world;
    one_has_passed(&world);
    happens(&world, ACT_TELL, 0);
    happens(&world, ACT_SYNC, 0);
    happens(&world, ACT_HEAR, 1);
    assert_int_equal(world.processes[1].core.acked, 0);
    happens(&world, ACT_PASS, 1);
    happens(&world, ACT_TELL, 1);
    happens(&world, ACT_HEAR, 1);
    assert_int_equal(world.processes[1].core.acked, 1);
    assert_int_equal(world.processes[1].life, LIFE_FINISHED);
    assert_int_equal(world_rendezvous(&world)->generation, 1);
}

/* If both bring the step before it is durable, both get the ACK when it is. */
static void a_step_that_both_bring_in_time_is_acknowledged_once(void **state)
{
    (void)state;
    static struct world world;
    one_has_passed(&world);
    happens(&world, ACT_PASS, 1);
    happens(&world, ACT_TELL, 0);
    happens(&world, ACT_TELL, 1);
    happens(&world, ACT_SYNC, 0);
    happens(&world, ACT_HEAR, 1);
    assert_int_equal(world.processes[1].life, LIFE_FINISHED);
    happens(&world, ACT_HEAR, 0);
    assert_int_equal(world.processes[0].life, LIFE_FINISHED);
    assert_false(may(&world, ACT_HEAR, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_acknowledgement_that_came_too_early_comes_again),
        cmocka_unit_test(a_step_that_both_bring_in_time_is_acknowledged_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
