/* Helpers of the tests of steps: a data set, events in one line each, effects as readable text. */
#pragma once

#include "shard/shard.h"

#include "base/testing/test.h"

#include <stdio.h>

struct scene {
    struct shard_state *state;
    struct shard_effects effects;
    char text[8192]; /* of the last event's effects */
};

static inline void write_effects(struct scene *scene)
{
    static const char *const names[] = {[SHARD_ADDED] = "added",
                                        [SHARD_REFUSED] = "refused",
                                        [SHARD_GRANTED] = "granted",
                                        [SHARD_WAIT] = "wait",
                                        [SHARD_END] = "end",
                                        [SHARD_EXPIRED] = "expired",
                                        [SHARD_SHRUNK] = "shrunk",
                                        [SHARD_EPOCH_DONE] = "epoch done",
                                        [SHARD_SUSPECTED] = "suspected",
                                        [SHARD_SET_ASIDE] = "set aside",
                                        [SHARD_FAILED] = "failed"};
    size_t used = 0;
    scene->text[0] = 0;
    for (size_t i = 0; i < scene->effects.count; i++) {
        const struct shard_effect *effect = &scene->effects.list[i];
        used += (size_t)snprintf(scene->text + used, sizeof scene->text - used, "%s%s",
                                 i ? ", " : "", names[effect->kind]);
        if (effect->owner) {
            used += (size_t)snprintf(scene->text + used, sizeof scene->text - used, " %llu",
                                     (unsigned long long)effect->owner);
        }
        if (effect->range.count > 0) {
            used +=
                (size_t)snprintf(scene->text + used, sizeof scene->text - used, " %u:%llu-%llu%s",
                                 effect->range.epoch, (unsigned long long)effect->range.first,
                                 (unsigned long long)shard_range_end(effect->range) - 1,
                                 effect->alone ? " alone" : "");
        }
        assert_true(used < sizeof scene->text);
    }
}

static inline int feed(struct scene *scene, struct shard_event event)
{
    int r = shard_step(scene->state, &event, &scene->effects);
    write_effects(scene);
    const char *broken = shard_check(scene->state);
    if (broken) {
        fail_msg("%s", broken);
    }
    return r;
}

#define assert_effects(scene, expected) assert_string_equal((scene)->text, expected)

/* Starts a state that serves one data set. */
static inline void scene_start(struct scene *scene, const struct shard_dataset *spec)
{
    scene->state = shard_new(0);
    assert_non_null(scene->state);
    assert_int_equal(feed(scene, (struct shard_event){.kind = SHARD_DATASET, .dataset_spec = spec}),
                     0);
    assert_effects(scene, "added");
    feed(scene, (struct shard_event){.kind = SHARD_SERVE});
}

static inline void scene_end(struct scene *scene)
{
    shard_free(scene->state);
}

static inline void joins(struct scene *scene, uint64_t owner)
{
    feed(scene,
         (struct shard_event){.kind = SHARD_JOIN, .owner = owner, .expires_ms = SHARD_LEASE_MS});
}

static inline void wants(struct scene *scene, uint64_t owner, uint64_t count)
{
    feed(scene, (struct shard_event){.kind = SHARD_WANT, .owner = owner, .count = count});
}

static inline void leaves(struct scene *scene, uint64_t owner)
{
    feed(scene, (struct shard_event){.kind = SHARD_GONE, .owner = owner});
}

static inline void of_part(struct scene *scene, enum shard_event_kind kind, uint64_t owner,
                           struct shard_range range)
{
    struct shard_part part = {owner, range};
    feed(scene, (struct shard_event){.kind = kind, .parts = &part, .part_count = 1});
}

static inline void commits(struct scene *scene, uint64_t owner, uint64_t first, uint32_t count)
{
    of_part(scene, SHARD_COMMIT, owner, (struct shard_range){.first = first, .count = count});
}
