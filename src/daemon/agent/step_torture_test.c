/* The agent's step with a simulated machine (step_world.h) in which everything happens in any
 * order: pods are made, deleted, and made again, processes end, starts, admissions and writes fail,
 * supervisors are killed, the controller dies. The invariants hold after each step; at the end
 * nothing fails any more, and nothing may be left over.
 *
 * The seed is printed; `daemon_step_torture_test rounds N seed S` runs a round again and, if N is
 * 1, prints each event with its effects.
 */
#include "daemon/agent/step_world.h"

#include "base/testing/test.h"
#include "base/testing/test_seeds.h"
#include "base/time/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ACTS = 3000, TURNS_MAX = 200000 };

static unsigned rounds = 200;
static uint64_t seed;

/* ---- What happens ---- */

static void create(struct world *w)
{
    size_t name = world_chance(w, WORLD_NAMES);
    struct world_object *object = &w->objects[name];
    if (!object->there) {
        *object = (struct world_object){.there = true};
        (void)snprintf(object->key, sizeof object->key, "d/%zu", name);
        (void)snprintf(object->uid, sizeof object->uid, "u%d", ++w->uids);
        (void)snprintf(object->job, sizeof object->job, "j%zu", name % WORLD_JOBS);
        world_post_look(w, object->key);
    }
}

/* Deletes a pod at once, or with a grace period; a second time with a shorter one. */
static void delete (struct world *w)
{
    struct world_object *object = &w->objects[world_chance(w, WORLD_NAMES)];
    uint32_t way = world_chance(w, 4);
    if (object->there && way == 0) {
        world_remove(w, object);
    } else if (object->there) {
        object->grace_s = object->deleting ? object->grace_s / 2 : way;
        object->deleting = true;
        world_post_look(w, object->key);
    }
}

static void retry(struct world *w)
{
    if (w->retry_armed) {
        w->retry_armed = false;
        world_post(w, (struct agent_event){.kind = AGENT_RETRY});
    }
}

static void pass_time(struct world *w)
{
    w->now_unix_ms += world_chance(w, 3000);
    for (size_t i = 0; i < 4 * WORLD_NAMES; i++) {
        struct world_pod *pod = &w->pods[i];
        if (pod->number && pod->wake_unix_ms && pod->wake_unix_ms <= w->now_unix_ms) {
            pod->wake_unix_ms = 0;
            world_post(w, (struct agent_event){.kind = AGENT_NEWS, .pod = pod->number});
        }
    }
}

static void write_remains(struct world *w)
{
    size_t from = world_chance(w, 4 * WORLD_NAMES);
    for (size_t i = 0; i < 4 * WORLD_NAMES; i++) {
        struct world_pod *pod = &w->pods[(from + i) % (4 * WORLD_NAMES)];
        if (pod->keeping) {
            pod->keeping = false;
            world_post(w, (struct agent_event){.kind = AGENT_KEPT, .pod = pod->number});
            return;
        }
    }
}

static void stop_agent(struct world *w)
{
    for (size_t i = 0; i < 4 * WORLD_NAMES; i++) {
        pod_free(w->pods[i].machine);
        w->pods[i] = (struct world_pod){0};
    }
    for (size_t i = 0; i < WORLD_JOBS; i++) {
        w->supervisors[i].connected = false;
    }
    w->count = 0;
    w->retry_armed = false;
    agent_state_done(&w->agent);
}

/* Does nothing while a status must still be written: a full disk and a controller that dies are one
 * fault too many. */
static void crash(struct world *w)
{
    w->store_fails = false;
    for (size_t i = 0; i < 4 * WORLD_NAMES; i++) {
        if (w->pods[i].number) {
            (void)world_write_status(w, &w->pods[i]);
        }
    }
    stop_agent(w);
    memset(w->held, 0, sizeof w->held);
    assert_true(agent_state_init(&w->agent));
    world_look_again(w);
    for (size_t left = w->count; left > 0; left--) { /* one turn, without answers in between */
        world_handle(w);
    }
}

static void act(struct world *w)
{
    struct world_supervisor *s = &w->supervisors[world_chance(w, WORLD_JOBS)];
    switch (world_chance(w, 40)) {
    case 0:
    case 1: create(w); return;
    case 2: delete (w); return;
    case 3: world_go_on(w, s, world_chance(w, 3) == 0); return;
    case 4: world_go_on(w, s, 0); return;
    case 5:
    case 6: world_hello(w, s); return;
    case 7: world_end(w, s); return;
    case 8: retry(w); return;
    case 9: pass_time(w); return;
    case 10: write_remains(w); return;
    case 11: w->store_fails = world_chance(w, 3) == 0; return;
    case 12: w->starts_fail = world_chance(w, 2) == 0; return;
    case 13: w->admits_fail = world_chance(w, 3) == 0; return;
    case 14:
        if (world_chance(w, 4) == 0) {
            world_kill(w, s);
        }
        return;
    case 15:
        if (world_chance(w, 12) == 0) {
            crash(w);
        }
        return;
    default: world_handle(w); return;
    }
}

/* ---- The end ---- */

static bool is_quiet(const struct world *w)
{
    bool quiet = w->count == 0 && !w->retry_armed && agent_state_pods(&w->agent) == 0;
    for (size_t i = 0; i < WORLD_JOBS; i++) {
        quiet = quiet && !w->supervisors[i].connected;
    }
    return quiet;
}

static void settle(struct world *w)
{
    w->store_fails = w->starts_fail = w->admits_fail = false;
    for (int turn = 0; turn < TURNS_MAX && !is_quiet(w) && !w->broken; turn++) {
        struct world_supervisor *s = &w->supervisors[world_chance(w, WORLD_JOBS)];
        world_go_on(w, s, 0);
        world_hello(w, s);
        world_end(w, s);
        retry(w);
        pass_time(w);
        write_remains(w);
        world_handle(w);
        world_handle(w);
        world_handle(w);
    }
    world_require(w, is_quiet(w), "something is left to do for ever");
    for (size_t i = 0; i < WORLD_NAMES; i++) {
        const struct world_object *object = &w->objects[i];
        world_require(w, !object->there || world_is_over(object), "a pod never came to its end");
        world_require(w, !object->there || !object->deleting, "a deleted object stays");
    }
    for (size_t i = 0; i < WORLD_HOLDERS; i++) {
        world_require(w, !w->held[i][0], "a GPU is held by nobody");
    }
}

static void play(uint64_t number)
{
    struct world *w = calloc(1, sizeof *w);
    *w = (struct world){
        .random = number, .now_unix_ms = 1767225600000, .agent_there = true, .shows = rounds == 1};
    assert_true(agent_state_init(&w->agent));
    for (int i = 0; i < ACTS && !w->broken; i++) {
        act(w);
    }
    settle(w);
    if (w->broken) {
        fail_msg("seed %llu: %s", (unsigned long long)number, w->broken);
    }
    stop_agent(w);
    for (size_t i = 0; i < WORLD_NAMES; i++) {
        json_decref(w->objects[i].status);
    }
    free(w);
}

static void everything_in_any_order(void **state)
{
    (void)state;
    print_message("%u rounds, seed %llu\n", rounds, (unsigned long long)seed);
    for (unsigned number = 0; number < rounds; number++) {
        play(seed + number);
    }
}

int main(int argc, char **argv)
{
    test_read_rounds(argc, argv, &rounds, &seed);
    const struct CMUnitTest tests[] = {cmocka_unit_test(everything_in_any_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
