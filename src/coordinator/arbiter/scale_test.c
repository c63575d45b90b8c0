/* 10,000 workers join, train and report, and one of them dies. The test prints the cost, which is
 * in proportion to the number of messages. The time is bounded by the test's limit, not by an
 * assertion. */
#include "base/testing/test.h"
#include "coordinator/arbiter/arbiter.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WORKERS = 10000, STEPS = 3, BATCH = 8 };

struct scene {
    struct arbiter *arbiter;
    struct arbiter_effects effects;
    size_t sent, opened;
    uint64_t granted; /* the first record of the last grant */
    uint64_t events;
};

static double now_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void note_grant(struct scene *scene, const struct arbiter_effect *effect)
{
    uint8_t memory[4096] __attribute__((aligned(16)));
    struct wire_room room = {memory, sizeof memory, 0};
    struct wire_message m;
    const uint8_t *bytes = arbiter_effect_bytes(&scene->effects, effect);
    if (effect->count > sizeof memory / 4 || bytes[WIRE_LENGTH_BYTES] != WIRE_GRANT) {
        return;
    }
    assert_int_equal(wire_read(bytes, effect->count, &room, &m, NULL), 0);
    scene->granted = m.grant.ranges.count > 0 ? m.grant.ranges.list[0].first : UINT64_MAX;
}

static void feed(struct scene *scene, struct arbiter_event event)
{
    struct muster_err err = MUSTER_ERR_INIT;
    bool synced = false;
    int r = arbiter_step(scene->arbiter, &event, &scene->effects, &err);
    if (r < 0) {
        fail_msg("%s", err.text);
    }
    scene->events++;
    for (size_t i = 0; i < scene->effects.count; i++) {
        const struct arbiter_effect *effect = &scene->effects.list[i];
        scene->sent += effect->kind == ARBITER_SEND;
        scene->opened += effect->kind == ARBITER_OPENED;
        synced = synced || effect->kind == ARBITER_SYNC;
        if (effect->kind == ARBITER_SEND) {
            note_grant(scene, effect);
        }
    }
    if (synced) {
        feed(scene, (struct arbiter_event){.kind = ARBITER_DURABLE});
    }
}

static void say(struct scene *scene, uint64_t who, struct wire_message message)
{
    feed(scene,
         (struct arbiter_event){.kind = ARBITER_MESSAGE, .incarnation = who, .message = &message});
}

static void begin(struct scene *scene)
{
    static const struct shard_dataset data = {
        .name = "a", .size = 1 << 30, .epochs = 1, .batch = BATCH};
    const struct arbiter_options options = {.sizes = {1, WORKERS, WORKERS},
                                            .peers = WORKERS + 64,
                                            .datasets = &data,
                                            .dataset_count = 1,
                                            .lease_ms = SHARD_LEASE_MS,
                                            .first_ms = SHARD_LEASE_MS};
    *scene = (struct scene){0};
    arbiter_effects_init(&scene->effects);
    assert_int_equal(arbiter_new(&options, &scene->arbiter, NULL), 0);
    feed(scene, (struct arbiter_event){.kind = ARBITER_START});
}

/* Returns numbers like those of processes, in no order. */
static uint64_t incarnation(uint64_t worker)
{
    return (worker + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static void join_all(struct scene *scene)
{
    const struct wire_message join = {.kind = WIRE_JOIN, .join.name = {"worker", 6}};
    for (uint64_t i = 0; i < WORKERS; i++) {
        say(scene, incarnation(i), join);
    }
    assert_int_equal(scene->opened, 1);
    assert_int_equal(scene->sent, WORKERS);
}

/* Lets one member get its records, and all members report that the step is committed. */
static void train(struct scene *scene, uint64_t version)
{
    const struct wire_message ask = {.kind = WIRE_ASK, .ask.records = BATCH};
    say(scene, incarnation(version), ask);
    struct shard_range range = {.first = scene->granted, .count = BATCH};
    const struct wire_step step = {.version = version, .ranges = {&range, 1}};
    const struct wire_message commits = {.kind = WIRE_COMMITS,
                                         .commits = {.generation = 1, .steps = {&step, 1}}};
    for (uint64_t i = 0; i < WORKERS; i++) {
        say(scene, incarnation(i), commits);
    }
    assert_int_equal(arbiter_version(scene->arbiter), version);
}

static void lose_one(struct scene *scene)
{
    const struct wire_message report = {
        .kind = WIRE_REPORT,
        .report = {.generation = 1, .version = STEPS, .closed = true, .loaded = true}};
    feed(scene, (struct arbiter_event){.kind = ARBITER_DEAD, .incarnation = incarnation(7)});
    for (uint64_t i = 0; i < WORKERS; i++) {
        if (i != 7) {
            say(scene, incarnation(i), report);
        }
    }
    assert_int_equal(arbiter_generation(scene->arbiter), 2);
    assert_int_equal(scene->opened, 2);
}

static void print_cost(struct scene *scene, const char *what, double *from)
{
    double now = now_s();
    print_message("%s: %.0f ms, %.2f us an event\n", what, (now - *from) * 1e3,
                  (now - *from) * 1e6 / (double)scene->events);
    scene->events = 0;
    *from = now;
}

static void ten_thousand_workers(void **state)
{
    (void)state;
    struct scene scene;
    double from = now_s();
    begin(&scene);
    join_all(&scene);
    print_cost(&scene, "join", &from);
    for (uint64_t version = 1; version <= STEPS; version++) {
        train(&scene, version);
    }
    print_cost(&scene, "commit", &from);
    lose_one(&scene);
    print_cost(&scene, "recover", &from);
    arbiter_free(scene.arbiter);
    arbiter_effects_done(&scene.effects);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ten_thousand_workers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
