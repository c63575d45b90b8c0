/* Snapshots: the state that comes back, the refusal of damaged ones, and a billion records with
 * leases everywhere. */
#include "shard/scene_test.h"

#include <muster/err.h>

#include <stdlib.h>

enum { BILLION = 1000000000, LEASES = 1000000, WORKERS = 1000, LEASE = 16 };

/* Starts a scene with two open epochs, held ranges, suspects, and a record set aside. */
static void start_full(struct scene *scene)
{
    struct shard_dataset spec = {.name = "a",
                                 .size = 50,
                                 .epochs = 3,
                                 .seed = UINT64_MAX,
                                 .batch = 10,
                                 .overlap = true,
                                 .set_aside = true};
    scene_start(scene, &spec);
    for (uint64_t owner = 1; owner <= 3; owner++) {
        joins(scene, owner);
        wants(scene, owner, 1);
        of_part(scene, SHARD_BLAME, owner, (struct shard_range){.count = 1});
        leaves(scene, owner);
    }
    joins(scene, 4);
    for (int i = 0; i < 7; i++) {
        wants(scene, 4, 10);
    }
    commits(scene, 4, 20, 5);
    of_part(scene, SHARD_BLAME, 4, (struct shard_range){.first = 30, .count = 4});
}

static size_t take_snapshot(const struct shard_state *state, uint8_t **ret)
{
    size_t bound = shard_snapshot_bound(state);
    *ret = malloc(bound);
    assert_non_null(*ret);
    return shard_snapshot(state, *ret, bound);
}

/* Held records are to do again; all else is as before, and a snapshot of it is the same. */
static void what_was_saved_comes_back(void **state)
{
    (void)state;
    struct scene scene;
    struct shard_state *restored = NULL;
    struct shard_progress before, after;
    uint8_t *bytes, *again;
    uint64_t record;
    uint32_t dataset;
    start_full(&scene);
    leaves(&scene, 4);
    size_t size = take_snapshot(scene.state, &bytes);
    assert_int_equal(shard_restore(bytes, size, 0, &restored), 0);
    assert_null(shard_check(restored));
    assert_true(shard_progress(scene.state, 0, &before) && shard_progress(restored, 0, &after));
    assert_memory_equal(&before.dataset, &after.dataset, sizeof before.dataset);
    assert_int_equal(after.epoch, before.epoch);
    assert_int_equal(after.epoch_done, before.epoch_done);
    assert_int_equal(after.to_do, before.to_do);
    assert_int_equal(shard_epoch_size(restored, 0, 1), 50);
    assert_true(shard_aside(restored, 0, &dataset, &record));
    assert_int_equal(take_snapshot(restored, &again), size);
    assert_memory_equal(bytes, again, size);
    free(bytes);
    free(again);
    shard_free(restored);
    scene_end(&scene);
}

static void damage_is_refused_or_harmless(void **state)
{
    (void)state;
    struct scene scene;
    uint8_t *bytes;
    size_t refused = 0;
    start_full(&scene);
    size_t size = take_snapshot(scene.state, &bytes);
    for (size_t cut = 0; cut < size; cut++) {
        struct shard_state *restored = NULL;
        assert_int_equal(shard_restore(bytes, cut, 0, &restored), MUSTER_EDATA);
    }
    for (size_t bit = 0; bit < size * 8; bit++) {
        struct shard_state *restored = NULL;
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        int r = shard_restore(bytes, size, 0, &restored);
        refused += r < 0;
        assert_true(r < 0 || !shard_check(restored));
        shard_free(restored);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_true(refused > size * 2); /* a seed or a name may have any value */
    free(bytes);
    scene_end(&scene);
}

/* Every second lease is committed, so that nothing merges: a million ranges are held. */
static void a_billion_records_fit_into_tens_of_megabytes(void **state)
{
    (void)state;
    struct scene scene;
    struct shard_dataset spec = {.size = BILLION, .epochs = 1, .batch = LEASE, .block = 1};
    scene_start(&scene, &spec);
    for (uint64_t i = 0; i < WORKERS; i++) {
        struct shard_event join = {
            .kind = SHARD_JOIN, .owner = 1 + i, .expires_ms = SHARD_LEASE_MS};
        assert_int_equal(shard_step(scene.state, &join, &scene.effects), 0);
    }
    for (uint64_t i = 0; i < 2 * (uint64_t)LEASES; i++) {
        struct shard_event want = {.kind = SHARD_WANT, .owner = 1 + i % WORKERS, .count = LEASE};
        assert_int_equal(shard_step(scene.state, &want, &scene.effects), 0);
        assert_int_equal(scene.effects.count, 1);
        struct shard_part part = {want.owner, scene.effects.list[0].range};
        struct shard_event commit = {.kind = SHARD_COMMIT, .parts = &part, .part_count = 1};
        if (i / WORKERS % 2) {
            assert_int_equal(shard_step(scene.state, &commit, &scene.effects), 0);
            assert_int_equal(scene.effects.count, 0);
        }
    }
    uint8_t *bytes;
    struct shard_state *restored = NULL;
    size_t size = take_snapshot(scene.state, &bytes);
    size_t memory = shard_bytes(scene.state);
    assert_int_equal(shard_restore(bytes, size, 0, &restored), 0);
    print_message("%d records, %d leases: %zu KiB of memory, %zu KiB of snapshot\n", BILLION,
                  LEASES, memory / 1024, size / 1024);
    assert_true(memory < 64 << 20);
    assert_true(size < 16 << 20);
    shard_free(restored);
    free(bytes);
    scene_end(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_saved_comes_back),
        cmocka_unit_test(damage_is_refused_or_harmless),
        cmocka_unit_test(a_billion_records_fit_into_tens_of_megabytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
