/* See schedule.h. */
#include "schedule.h"

#include "base/testing/test_draw.h"

#include <string.h>

static struct world_config draw_config(uint64_t *random)
{
    struct world_config config = {.kinds = FAULT_ALL};
    config.joiners = (uint8_t)test_draw(random, 3);
    config.processes = (uint8_t)(config.joiners + 1 + test_draw(random, 3));
    config.records = (uint8_t)(1 + test_draw(random, 6));
    config.faults = (uint8_t)test_draw(random, 6);
    config.ahead = (uint8_t)(1 + test_draw(random, 3));
    config.batch = (uint8_t)(1 + test_draw(random, 2));
    config.checkpoints = (uint8_t)test_draw(random, 3);
    config.relaunch = test_draw(random, 2) == 1;
    config.codec = test_draw(random, 8) == 0;
    return config;
}

/* Chooses a fault only rarely, so that the faults that are permitted are spread over the run. */
static size_t choose(uint64_t *random, const struct action *actions, size_t count)
{
    size_t calm = 0;
    size_t index[ACTIONS_MAX];
    for (size_t i = 0; i < count; i++) {
        if (actions[i].kind < ACT_FAULTS) {
            index[calm++] = i;
        }
    }
    if (calm == 0 || (calm < count && test_draw(random, 12) == 0)) {
        return test_draw(random, (uint32_t)count);
    }
    return index[test_draw(random, (uint32_t)calm)];
}

static bool only_faults(const struct action *actions, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (actions[i].kind < ACT_FAULTS) {
            return false;
        }
    }
    return true;
}

/* Returns what is wrong when nothing changes any more. */
static const char *end_of(const struct world *world)
{
    return world->broken ? world->broken : world_end(world);
}

void schedule_run(uint64_t seed, struct schedule *ret)
{
    uint64_t random = (seed + 1) * 0x9e3779b97f4a7c15u;
    struct world world;
    struct action actions[ACTIONS_MAX];
    ret->config = draw_config(&random);
    ret->count = 0;
    world_init(&world, &ret->config);
    while (!world.broken && ret->count < SCHEDULE_MAX) {
        size_t count = world_actions(&world, actions);
        if (only_faults(actions, count)) {
            break;
        }
        struct action action = actions[choose(&random, actions, count)];
        ret->actions[ret->count++] = action;
        world_act(&world, action);
    }
    ret->broken = ret->count == SCHEDULE_MAX ? "each way comes to its end" : end_of(&world);
}

static bool is_possible(const struct world *world, struct action action)
{
    struct action actions[ACTIONS_MAX];
    size_t count = world_actions(world, actions);
    for (size_t i = 0; i < count; i++) {
        if (memcmp(&actions[i], &action, sizeof action) == 0) {
            return true;
        }
    }
    return false;
}

/* Leaves only actions in the schedule that have happened. */
static void replay(struct schedule *s)
{
    struct world world;
    struct action actions[ACTIONS_MAX];
    size_t happened = 0, given = s->count;
    world_init(&world, &s->config);
    for (size_t i = 0; i < given && !world.broken; i++) {
        if (is_possible(&world, s->actions[i])) {
            s->actions[happened++] = s->actions[i];
            world_act(&world, s->actions[happened - 1]);
        }
    }
    uint64_t random = 1;
    while (!world.broken && happened < SCHEDULE_MAX) {
        size_t count = world_actions(&world, actions);
        if (only_faults(actions, count)) {
            break;
        }
        size_t at = test_draw(&random, (uint32_t)count);
        while (actions[at].kind >= ACT_FAULTS) {
            at = (at + 1) % count;
        }
        s->actions[happened++] = actions[at];
        world_act(&world, actions[at]);
    }
    s->count = happened;
    s->broken = happened == SCHEDULE_MAX ? "each way comes to its end" : end_of(&world);
}

void schedule_shrink(struct schedule *schedule)
{
    static struct schedule best, tried;
    best = *schedule;
    for (size_t piece = best.count / 2; piece > 0; piece /= 2) {
        for (size_t at = 0; at + piece <= best.count;) {
            tried = best;
            tried.count -= piece;
            memmove(tried.actions + at, tried.actions + at + piece,
                    (tried.count - at) * sizeof *tried.actions);
            replay(&tried);
            if (tried.broken && tried.count < best.count) {
                best = tried;
            } else {
                at += piece;
            }
        }
    }
    *schedule = best;
}
