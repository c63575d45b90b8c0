/* Random schedules of joins, grants, commits, returns, expiries, kills, crashes and restarts
 * against a plain table of who holds what. After every step: each record is done at most once, has
 * one owner at a time, and the invariants of the state hold (shard_check). At the end every record
 * of every epoch is done exactly once, or is a poisonous one that was set aside; only poisonous
 * ones are named.
 *
 * A schedule is a list of numbers. A schedule that fails is made shorter as long as it still fails,
 * and printed. MUSTER_SEED=N runs one seed alone, MUSTER_SIMULATIONS=N runs N seeds.
 */
#include "shard/shard.h"

#include "base/testing/test.h"
#include "base/testing/test_seeds.h"

#include "shard/order.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    DATASETS = 2,
    EPOCHS = 5,
    POSITIONS = 96,
    WORKERS = 5,
    MOVES = 150,
    SCHEDULES = 3000,
    LOG_MAX = 4000,
    ROUNDS_MAX = 20000,
};

struct worker {
    uint64_t incarnation; /* 0: none */
    bool expired;
    bool waits[DATASETS];
    bool ended[DATASETS];
};

/* The entries of the journal since the last snapshot. */
struct entry {
    struct shard_event event;
    struct shard_dataset spec;
    struct shard_part parts[SHARD_PARTS_MAX];
};

struct world {
    struct shard_state *state;
    struct worker workers[WORKERS];
    uint64_t last_incarnation;
    int64_t now_ms;
    uint64_t holder[DATASETS][EPOCHS][POSITIONS]; /* 0: none */
    int done[DATASETS][EPOCHS][POSITIONS];
    bool poisonous[DATASETS][POSITIONS]; /* by record */
    struct shard_dataset spec[DATASETS];
    bool failed;
    const char *broken; /* NULL, or the name of the invariant */
    struct shard_effects effects;
    uint8_t *snapshot;
    size_t snapshot_bytes;
    struct entry *log;
    size_t log_count;
};

static void expect(struct world *world, bool kept, const char *invariant)
{
    if (!kept && !world->broken) {
        world->broken = invariant;
    }
}

static struct worker *worker_of(struct world *world, uint64_t incarnation)
{
    for (int i = 0; i < WORKERS; i++) {
        if (world->workers[i].incarnation == incarnation) {
            return &world->workers[i];
        }
    }
    return NULL;
}

static uint64_t record_at(const struct world *world, struct shard_range range)
{
    const struct shard_dataset *spec = &world->spec[range.dataset];
    struct shard_order order;
    shard_order_init(&order, spec->size, spec->block, spec->seed, range.dataset, range.epoch);
    return shard_order_record(&order, range.first);
}

static bool is_poisonous(const struct world *world, struct shard_range range)
{
    bool found = false;
    for (; range.count > 0; range.first++, range.count--) {
        found = found || world->poisonous[range.dataset][record_at(world, range)];
    }
    return found;
}

static size_t held_by(const struct world *world, uint64_t incarnation)
{
    size_t count = 0;
    const uint64_t *all = &world->holder[0][0][0];
    for (size_t i = 0; i < DATASETS * EPOCHS * POSITIONS; i++) {
        count += all[i] == incarnation;
    }
    return count;
}

/* ---- Effects ---- */

static void set_holder(struct world *world, struct shard_range range, uint64_t from, uint64_t to)
{
    for (uint64_t i = range.first; i < shard_range_end(range); i++) {
        expect(world, world->holder[range.dataset][range.epoch][i] == from, "one owner at a time");
        expect(world, world->done[range.dataset][range.epoch][i] == 0, "what is done stays done");
        world->holder[range.dataset][range.epoch][i] = to;
    }
}

static void on_granted(struct world *world, const struct shard_effect *effect)
{
    struct worker *worker = worker_of(world, effect->owner);
    expect(world, worker && !worker->expired, "only who lives is granted records");
    expect(world, shard_range_end(effect->range) <= world->spec[effect->dataset].size,
           "a grant is inside of the epoch");
    expect(world, !effect->alone || held_by(world, effect->owner) == 0, "suspects are held alone");
    if (worker && !world->broken) {
        worker->waits[effect->dataset] = false;
        set_holder(world, effect->range, 0, effect->owner);
    }
}

static void on_end(struct world *world, const struct shard_effect *effect)
{
    struct shard_progress progress;
    (void)shard_progress(world->state, effect->dataset, &progress);
    expect(world, progress.epoch == progress.dataset.epochs, "the end comes when all is done");
    struct worker *worker = worker_of(world, effect->owner);
    expect(world, worker != NULL, "the end is told to workers");
    if (worker) {
        worker->ended[effect->dataset] = true;
        worker->waits[effect->dataset] = false;
    }
}

static void on_named(struct world *world, const struct shard_effect *effect)
{
    expect(world, effect->range.count == 1, "one record is named");
    expect(world, world->poisonous[effect->dataset][effect->record],
           "only poisonous ones are named");
    expect(world, effect->record == record_at(world, effect->range), "it is the right record");
    expect(world, effect->count >= SHARD_TRIES, "it was tried often enough");
    expect(world, world->spec[effect->dataset].set_aside == (effect->kind == SHARD_SET_ASIDE),
           "what happens to it is the data set's choice");
    if (effect->kind == SHARD_SET_ASIDE) {
        world->done[effect->dataset][effect->range.epoch][effect->range.first]++;
    } else {
        world->failed = true;
    }
}

static void take_effects(struct world *world)
{
    for (size_t i = 0; i < world->effects.count; i++) {
        const struct shard_effect *effect = &world->effects.list[i];
        struct worker *worker = worker_of(world, effect->owner);
        const struct shard_effect *last = i > 0 ? effect - 1 : effect;
        bool one_grant = effect->kind == SHARD_GRANTED && last->kind == SHARD_GRANTED &&
                         last->owner == effect->owner && last->dataset == effect->dataset;
        expect(world, !one_grant || last->range.epoch == effect->range.epoch,
               "a grant is of one epoch");
        if (effect->kind == SHARD_GRANTED) {
            on_granted(world, effect);
        } else if (effect->kind == SHARD_END) {
            on_end(world, effect);
        } else if (effect->kind == SHARD_SET_ASIDE || effect->kind == SHARD_FAILED) {
            on_named(world, effect);
        } else if (effect->kind == SHARD_EXPIRED && worker) {
            worker->expired = true;
        } else if (effect->kind == SHARD_WAIT && worker) {
            worker->waits[effect->dataset] = true;
        }
    }
}

static void feed(struct world *world, struct shard_event event)
{
    do {
        int r = shard_step(world->state, &event, &world->effects);
        expect(world, r == 0, "a step has memory");
        take_effects(world);
        const char *broken = shard_check(world->state);
        expect(world, !broken, broken);
        event = (struct shard_event){.kind = SHARD_GO_ON};
    } while (world->effects.more && !world->broken);
}

static bool was_refused(const struct world *world)
{
    return world->effects.count > 0 && world->effects.list[0].kind == SHARD_REFUSED;
}

/* Feeds an event that must be fed again after a restart. */
static void feed_and_log(struct world *world, struct shard_event event)
{
    struct entry *entry = &world->log[world->log_count++];
    assert_true(world->log_count <= LOG_MAX);
    *entry = (struct entry){.event = event};
    for (size_t i = 0; i < event.part_count; i++) {
        entry->parts[i] = event.parts[i];
    }
    if (event.dataset_spec) {
        entry->spec = *event.dataset_spec;
    }
    feed(world, event);
}

/* ---- Moves ---- */

static void join(struct world *world)
{
    struct worker *worker = worker_of(world, 0);
    if (worker) {
        *worker = (struct worker){.incarnation = ++world->last_incarnation};
        feed(world, (struct shard_event){.kind = SHARD_JOIN,
                                         .owner = worker->incarnation,
                                         .expires_ms = world->now_ms + SHARD_LEASE_MS});
    }
}

static void want(struct world *world, struct worker *worker, uint32_t dataset, uint32_t count)
{
    feed(world,
         (struct shard_event){
             .kind = SHARD_WANT, .owner = worker->incarnation, .dataset = dataset, .count = count});
}

/* The records that a worker holds have no holder any more. */
static void forget_holder(struct world *world, uint64_t incarnation)
{
    uint64_t *all = &world->holder[0][0][0];
    for (size_t i = 0; i < DATASETS * EPOCHS * POSITIONS; i++) {
        all[i] = all[i] == incarnation ? 0 : all[i];
    }
}

static void gone(struct world *world, struct worker *worker)
{
    uint64_t incarnation = worker->incarnation;
    forget_holder(world, incarnation);
    *worker = (struct worker){0};
    feed(world, (struct shard_event){.kind = SHARD_GONE, .owner = incarnation});
}

/* Finds the n-th run of positions that a worker holds; false: it has fewer. */
static bool find_run(const struct world *world, uint64_t incarnation, size_t n,
                     struct shard_range *ret)
{
    for (uint32_t dataset = 0; dataset < DATASETS; dataset++) {
        for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
            const uint64_t *row = world->holder[dataset][epoch];
            for (uint32_t i = 0; i < POSITIONS; i++) {
                bool begins = row[i] == incarnation && (i == 0 || row[i - 1] != incarnation);
                if (begins && n-- == 0) {
                    *ret = (struct shard_range){dataset, epoch, i, 1};
                    while (i + ret->count < POSITIONS && row[i + ret->count] == incarnation) {
                        ret->count++;
                    }
                    return true;
                }
            }
        }
    }
    return false;
}

static void crash(struct world *world, struct worker *worker, struct shard_range run, bool all)
{
    struct shard_part parts[SHARD_PARTS_MAX] = {{worker->incarnation, run}};
    size_t count = 1;
    if (all) {
        for (count = 0; count < SHARD_PARTS_MAX &&
                        find_run(world, worker->incarnation, count, &parts[count].range);
             count++) {
            parts[count].owner = worker->incarnation;
        }
    }
    forget_holder(world, worker->incarnation);
    feed(world, (struct shard_event){.kind = SHARD_STOP, .owner = worker->incarnation});
    feed_and_log(world,
                 (struct shard_event){.kind = SHARD_BLAME, .parts = parts, .part_count = count});
    expect(world, !was_refused(world), "what is in flight may be blamed");
    gone(world, worker);
}

/* A worker does a step: any part of the records that it holds. It crashes at a poisonous record. */
static void train(struct world *world, struct worker *worker, uint32_t choice)
{
    struct shard_range run;
    if (!find_run(world, worker->incarnation, choice % 3, &run) &&
        !find_run(world, worker->incarnation, 0, &run)) {
        return;
    }
    uint32_t skipped = choice / 3 % 4 == 0 ? choice / 12 % run.count : 0;
    run.first += skipped;
    run.count -= skipped;
    run.count = 1 + choice / 64 % run.count;
    if (is_poisonous(world, run)) {
        crash(world, worker, run, choice % 2 && held_by(world, worker->incarnation) < 30);
        return;
    }
    struct shard_part part = {choice % 5 ? worker->incarnation : SHARD_ANY_OWNER, run};
    set_holder(world, run, worker->incarnation, 0);
    for (uint64_t i = run.first; i < shard_range_end(run); i++) {
        world->done[run.dataset][run.epoch][i]++;
    }
    feed_and_log(world,
                 (struct shard_event){.kind = SHARD_COMMIT, .parts = &part, .part_count = 1});
    expect(world, !was_refused(world), "who holds records may commit them");
}

static void give_back(struct world *world, struct worker *worker, uint32_t choice)
{
    struct shard_part part = {.owner = worker->incarnation};
    if (find_run(world, worker->incarnation, 0, &part.range)) {
        uint32_t kept = choice % part.range.count;
        part.range.first += kept;
        part.range.count -= kept;
        set_holder(world, part.range, worker->incarnation, 0);
        feed(world, (struct shard_event){.kind = SHARD_GIVE_BACK, .parts = &part, .part_count = 1});
        expect(world, !was_refused(world), "who holds records may give them back");
    }
}

/* Lets a worker commit records that it does not hold, or the same records twice: this is
 * refused. */
static void cheat(struct world *world, uint32_t choice)
{
    struct shard_part parts[2] = {
        {.owner = 1 + choice % (world->last_incarnation + 2),
         .range = {choice % DATASETS, choice / 2 % EPOCHS, choice / 16 % POSITIONS, 1}}};
    parts[1] = parts[0];
    bool held = parts[0].owner ==
                world->holder[parts[0].range.dataset][parts[0].range.epoch][parts[0].range.first];
    feed(world,
         (struct shard_event){.kind = SHARD_COMMIT, .parts = parts, .part_count = held ? 2 : 1});
    expect(world, was_refused(world), "what is not held once cannot be committed");
}

static void tick(struct world *world, uint32_t choice)
{
    world->now_ms += choice % 12000;
    for (int i = 0; i < WORKERS; i++) {
        struct worker *worker = &world->workers[i];
        if (worker->incarnation && !worker->expired && (choice >> (12 + i)) % 4 > 0) {
            feed(world, (struct shard_event){.kind = SHARD_RENEW,
                                             .owner = worker->incarnation,
                                             .expires_ms = world->now_ms + SHARD_LEASE_MS});
        }
    }
    feed(world, (struct shard_event){.kind = SHARD_TICK, .now_ms = world->now_ms});
}

/* ---- A coordinator that is killed and comes back ---- */

static void save(struct world *world)
{
    size_t bound = shard_snapshot_bound(world->state);
    world->snapshot = realloc(world->snapshot, bound);
    assert_non_null(world->snapshot);
    world->snapshot_bytes = shard_snapshot(world->state, world->snapshot, bound);
    world->log_count = 0;
}

static void replay(struct world *world)
{
    static struct shard_effects effects;
    for (size_t i = 0; i < world->log_count; i++) {
        struct entry *entry = &world->log[i];
        entry->event.parts = entry->parts;
        entry->event.dataset_spec = &entry->spec;
        expect(world, shard_step(world->state, &entry->event, &effects) == 0, "replay has memory");
        expect(world, effects.count == 0 || effects.list[0].kind != SHARD_REFUSED,
               "what was committed is committed again in a replay");
    }
}

static void report(struct world *world, struct worker *worker)
{
    struct shard_part part = {.owner = worker->incarnation};
    feed(world, (struct shard_event){.kind = SHARD_JOIN,
                                     .owner = worker->incarnation,
                                     .expires_ms = world->now_ms + SHARD_LEASE_MS});
    for (size_t n = 0; find_run(world, worker->incarnation, n, &part.range); n++) {
        feed(world, (struct shard_event){.kind = SHARD_HELD, .parts = &part, .part_count = 1});
        expect(world, !was_refused(world), "what a worker holds is not taken from it by a restart");
    }
}

/* Starts the coordinator again. Some workers die meanwhile, and the records that they held are to
 * do again. */
static void restart(struct world *world, uint32_t choice)
{
    shard_free(world->state);
    world->state = NULL;
    int r = shard_restore(world->snapshot, world->snapshot_bytes, 0, &world->state);
    expect(world, r == 0, "a snapshot is restored");
    if (r < 0) {
        return;
    }
    replay(world);
    for (int i = 0; i < WORKERS; i++) {
        struct worker *worker = &world->workers[i];
        if (worker->incarnation && (choice >> i) % 2) {
            forget_holder(world, worker->incarnation);
            *worker = (struct worker){0};
        } else if (worker->incarnation) {
            *worker = (struct worker){.incarnation = worker->incarnation};
            report(world, worker);
        }
    }
    feed(world, (struct shard_event){.kind = SHARD_SERVE});
}

/* ---- A run ---- */

static void move(struct world *world, uint32_t number)
{
    uint32_t choice = number / 32;
    struct worker *worker = &world->workers[choice % WORKERS];
    uint32_t kind = number % 32;
    choice /= WORKERS;
    if (kind < 3 || (!worker->incarnation && kind < 26)) {
        join(world);
    } else if (kind < 11) {
        want(world, worker, choice % DATASETS, 1 + choice / DATASETS % 40);
    } else if (kind < 22) {
        train(world, worker, choice);
    } else if (kind < 23) {
        give_back(world, worker, choice);
    } else if (kind < 26) {
        gone(world, worker);
    } else if (kind < 28) {
        cheat(world, choice);
    } else if (kind < 30) {
        tick(world, choice);
    } else if (kind < 31) {
        save(world);
    } else {
        restart(world, choice);
    }
}

static bool is_done(const struct world *world)
{
    bool done = true;
    for (uint32_t i = 0; i < DATASETS; i++) {
        struct shard_progress progress;
        (void)shard_progress(world->state, i, &progress);
        done = done && progress.epoch == progress.dataset.epochs;
    }
    return done;
}

/* All workers work until all is done: this must end. */
static void finish(struct world *world)
{
    for (int round = 0; round < ROUNDS_MAX && !world->broken && !world->failed; round++) {
        if (is_done(world)) {
            return;
        }
        for (int i = 0; i < WORKERS && !world->broken && !world->failed; i++) {
            struct worker *worker = &world->workers[i];
            if (worker->expired) {
                gone(world, worker);
            } else if (!worker->incarnation) {
                join(world);
            } else if (held_by(world, worker->incarnation) > 0) {
                train(world, worker, UINT32_MAX / 3 * 3);
            } else {
                uint32_t next = worker->ended[0] ? 1 : 0;
                if (!worker->waits[next] && !worker->ended[next]) {
                    want(world, worker, next, 8);
                }
            }
        }
    }
    expect(world, world->failed, "there is an end");
}

static bool is_aside(const struct world *world, struct shard_range range)
{
    uint32_t dataset;
    uint64_t record;
    for (size_t i = 0; shard_aside(world->state, i, &dataset, &record); i++) {
        if (dataset == range.dataset && record == record_at(world, range)) {
            return true;
        }
    }
    return false;
}

/* A record that is set aside is left out of the epochs after the one in which it was named. */
static void assert_all_done(struct world *world)
{
    for (uint32_t dataset = 0; dataset < DATASETS; dataset++) {
        const struct shard_dataset *spec = &world->spec[dataset];
        for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
            for (uint32_t i = 0; i < POSITIONS; i++) {
                int times = epoch < spec->epochs && i < spec->size;
                int done = world->done[dataset][epoch][i];
                bool left_out = done == 0 && times == 1 &&
                                is_aside(world, (struct shard_range){dataset, epoch, i, 1});
                expect(world, done == times || left_out, "each record is done once");
            }
        }
    }
}

static uint32_t draw(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*seed >> 32);
}

static void set_up(struct world *world, uint64_t seed)
{
    for (uint32_t i = 0; i < DATASETS; i++) {
        struct shard_dataset *spec = &world->spec[i];
        *spec = (struct shard_dataset){.size = 1 + draw(&seed) % POSITIONS,
                                       .epochs = 1 + draw(&seed) % (EPOCHS - 1),
                                       .seed = seed,
                                       .block = draw(&seed) % 3,
                                       .batch = 1 + draw(&seed) % 8,
                                       .overlap = draw(&seed) % 2,
                                       .set_aside = draw(&seed) % 4 > 0};
        (void)snprintf(spec->name, sizeof spec->name, "set %u", i);
        for (uint32_t left = draw(&seed) % 3; left > 0; left--) {
            world->poisonous[i][draw(&seed) % spec->size] = true;
        }
        feed_and_log(world, (struct shard_event){.kind = SHARD_DATASET, .dataset_spec = spec});
    }
    save(world);
    feed(world, (struct shard_event){.kind = SHARD_SERVE});
}

/* Returns NULL, or the name of the invariant that was violated. */
static const char *run(uint64_t seed, const uint32_t *moves, size_t count)
{
    static struct entry log[LOG_MAX];
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    world->log = log;
    world->state = shard_new(0);
    assert_non_null(world->state);
    set_up(world, seed);
    for (size_t i = 0; i < count && !world->broken && !world->failed; i++) {
        move(world, moves[i]);
    }
    if (!world->broken && !world->failed) {
        save(world);
        finish(world);
    }
    if (!world->broken && !world->failed) {
        assert_all_done(world);
    }
    const char *broken = world->broken;
    shard_free(world->state);
    free(world->snapshot);
    free(world);
    return broken;
}

/* Finds fewer moves that also violate an invariant. */
static size_t shrink(uint64_t seed, uint32_t *moves, size_t count)
{
    uint32_t shorter[MOVES];
    for (size_t length = count / 2; length > 0; length /= 2) {
        for (size_t at = 0; at + length <= count;) {
            memcpy(shorter, moves, at * sizeof *moves);
            memcpy(shorter + at, moves + at + length, (count - at - length) * sizeof *moves);
            if (run(seed, shorter, count - length)) {
                count -= length;
                memcpy(moves, shorter, count * sizeof *moves);
            } else {
                at += length;
            }
        }
    }
    return count;
}

static void try_seed(uint64_t seed)
{
    uint32_t moves[MOVES];
    uint64_t state = seed * 2 + 1;
    for (size_t i = 0; i < MOVES; i++) {
        moves[i] = draw(&state);
    }
    if (run(seed, moves, MOVES)) {
        size_t count = shrink(seed, moves, MOVES);
        print_error("MUSTER_SEED=%llu, %zu moves:", (unsigned long long)seed, count);
        for (size_t i = 0; i < count; i++) {
            print_error(" %u:%u", moves[i] % 32, moves[i] / 32);
        }
        fail_msg("broken: %s", run(seed, moves, count));
    }
}

static void every_record_is_done_once_whatever_happens(void **state)
{
    (void)state;
    test_each_seed(SCHEDULES, try_seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_record_is_done_once_whatever_happens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
