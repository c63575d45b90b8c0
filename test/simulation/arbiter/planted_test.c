/* A mistake about steps whose size follows the workers: the coordinator makes the first step of a
 * generation as large as its workers make it, even if other workers have begun this step before.
 * The mistake is found when it is planted; without it, none of these seeds finds anything
 * (random_test.c). */
#include "base/testing/test.h"
#include "chance.h"
#include "shard/anchor.h"

enum { SEEDS = 4000 };

static bool planted;

struct shard_anchor __real_shard_anchor_move(const struct shard_anchor *anchor,
                                             struct shard_extent extent, uint64_t version,
                                             uint32_t later);
struct shard_anchor __wrap_shard_anchor_move(const struct shard_anchor *anchor,
                                             struct shard_extent extent, uint64_t version,
                                             uint32_t later);

struct shard_anchor __wrap_shard_anchor_move(const struct shard_anchor *anchor,
                                             struct shard_extent extent, uint64_t version,
                                             uint32_t later)
{
    struct shard_anchor moved = __real_shard_anchor_move(anchor, extent, version, later);
    moved.next = planted ? later : moved.next;
    return moved;
}

/* Returns the seed that found it; 0: none did. */
static uint64_t seek(const char *invariant)
{
    static struct job job;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const char *broken = chance_run(&job, seed, false);
        job_done(&job);
        if (broken) {
            assert_string_equal(broken, invariant);
            print_message("seed %llu: %s\n", (unsigned long long)seed, broken);
            return seed;
        }
    }
    return 0;
}

static void a_step_that_grows_while_it_is_tried_again_is_found(void **state)
{
    (void)state;
    planted = true;
    assert_true(seek("a step that is tried again has the same records") > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_that_grows_while_it_is_tried_again_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
