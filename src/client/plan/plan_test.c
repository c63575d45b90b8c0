/* Checks that every record is trained once in every epoch, whichever workers compute: for all small
 * plans, and many sequences of world sizes. */
#include "client/plan/plan.h"

#include "base/testing/test.h"
#include "base/testing/test_assert.h"

#include <stdlib.h>

enum { RECORDS = 13, EPOCHS = 3, WORLDS = 6 };

static struct plan plan_of(uint64_t records, uint32_t batch, uint32_t micro_batches, uint32_t block)
{
    return (struct plan){.records = records,
                         .seed = 7,
                         .epochs = EPOCHS,
                         .batch = batch,
                         .micro_batches = micro_batches,
                         .shuffle = block};
}

/* Lets all workers of a world compute their shares of a step. */
static void train(const struct plan *plan, uint64_t version, uint32_t size,
                  unsigned counts[EPOCHS][RECORDS])
{
    struct plan_step step = plan_step(plan, version);
    uint32_t next = 0;
    for (uint32_t rank = 0; rank < size; rank++) {
        struct plan_share share = plan_share(step.micro_batches, rank, size);
        assert_int_equal(share.first, next); /* shares follow each other, in rank order */
        next += share.count;
        for (uint32_t m = share.first; m < next; m++) {
            uint64_t records[RECORDS];
            struct shard_range range = plan_micro_batch(plan, &step, m);
            assert_in_range(range.count, 1, plan->batch);
            plan_records(plan, range, records);
            for (uint32_t i = 0; i < range.count; i++) {
                assert_in_range(records[i], 0, plan->records - 1);
                counts[step.epoch][records[i]]++;
            }
        }
    }
    assert_int_equal(next, step.micro_batches);
}

static void train_all(const struct plan *plan, unsigned worlds)
{
    unsigned counts[EPOCHS][RECORDS] = {0};
    uint64_t done = 0;
    for (uint64_t v = 1; v <= plan_steps(plan); v++) {
        train(plan, v, (worlds >> (v % 8) * 2 & 3) * 2 + 1, counts);
        done += plan_step(plan, v).count;
        assert_int_equal(plan_records_done(plan, v), done);
    }
    assert_int_equal(done, plan->records * plan->epochs);
    for (int e = 0; e < EPOCHS; e++) {
        for (uint64_t r = 0; r < plan->records; r++) {
            assert_int_equal(counts[e][r], 1);
        }
    }
}

static void each_record_is_trained_once_an_epoch(void **state)
{
    (void)state;
    for (uint64_t records = 1; records <= RECORDS; records++) {
        for (uint32_t batch = 1; batch <= 5; batch++) {
            for (uint32_t g = 1; g <= 7; g++) {
                for (uint32_t block = 0; block <= 2; block++) {
                    struct plan plan = plan_of(records, batch, g, block);
                    train_all(&plan, (unsigned)(records * 977 + batch * 131 + g * 17 + block));
                }
            }
        }
    }
}

/* Sequences of worlds of 1, 3, 5 and 7 workers all train every record once. */
static void worlds_change_nothing(void **state)
{
    (void)state;
    struct plan plan = plan_of(11, 2, 3, 1);
    for (unsigned worlds = 0; worlds < 1u << 16; worlds += 3) {
        train_all(&plan, worlds);
    }
}

static void shares_differ_by_one_pass(void **state)
{
    (void)state;
    for (uint32_t g = 1; g < 40; g++) {
        for (uint32_t size = 1; size < 20; size++) {
            for (uint32_t rank = 0; rank < size; rank++) {
                struct plan_share share = plan_share(g, rank, size);
                assert_in_range(share.count, g / size, g / size + 1);
            }
        }
    }
}

/* The last step of an epoch has the rest: 2 micro-batches, the second of 1 record. */
static void the_end_of_an_epoch_is_a_smaller_step(void **state)
{
    (void)state;
    struct plan plan = plan_of(11, 2, 4, 0);
    assert_int_equal(plan_steps(&plan), 2 * EPOCHS);
    struct plan_step step = plan_step(&plan, 4);
    assert_int_equal(step.epoch, 1);
    assert_int_equal(step.first, 8);
    assert_int_equal(step.count, 3);
    assert_int_equal(step.micro_batches, 2);
    assert_int_equal(plan_micro_batch(&plan, &step, 1).first, 10);
    assert_int_equal(plan_micro_batch(&plan, &step, 1).count, 1);
    struct shard_range range = plan_step_range(&plan, &step);
    assert_true(range.first == 8 && range.count == 3 && range.epoch == 1);
}

/* The limit may be in the middle of an epoch, at its end, or beyond the last epoch, where it
 * changes nothing. */
static void a_limit_ends_the_plan(void **state)
{
    (void)state;
    struct plan plan = plan_of(11, 2, 4, 0);
    const struct plan whole = plan;
    for (uint64_t most = 1; most < 2 * EPOCHS + 3; most++) {
        plan.max_steps = most;
        uint64_t last = most < 2 * EPOCHS ? most : 2 * EPOCHS;
        assert_int_equal(plan_steps(&plan), last);
        assert_int_equal(plan_records_done(&plan, last), plan_records_done(&whole, last));
        assert_int_equal(plan_epochs_done(&plan, last), last / 2);
        assert_true(plan_digest(&plan) == plan_digest(&whole));
    }
    plan.max_steps = 3;
    assert_int_equal(plan_records_done(&plan, 3), 11 + 8);
}

/* A generation may begin at any version, with any number of workers, and at the same base as the
 * one before. */
static void the_global_batch_follows_the_workers(void **state)
{
    (void)state;
    for (unsigned worlds = 0; worlds < 1u << 14; worlds++) {
        unsigned counts[EPOCHS][RECORDS] = {0};
        struct plan plan = plan_of(RECORDS, 1 + worlds % 3, 1 + worlds % 2, 1);
        plan.per_worker = true;
        struct shard_anchor anchor = {.next = plan.micro_batches, .later = plan.micro_batches};
        uint64_t version = 0;
        for (unsigned i = 0; version < plan_steps(&plan); i++) {
            const struct shard_extent extent = {RECORDS, EPOCHS, plan.batch};
            uint32_t size = (worlds >> i % 7 * 2 & 3) + 1;
            anchor = shard_anchor_move(&anchor, extent, version, plan.micro_batches * size);
            assert_true(plan_anchor_fits(&plan, &anchor, version));
            plan.anchor = anchor;
            for (unsigned steps = i % 3; steps > 0 && version < plan_steps(&plan); steps--) {
                train(&plan, ++version, size, counts);
            }
            assert_true(plan_records_done(&plan, version) <= RECORDS * EPOCHS);
        }
        assert_int_equal(plan_records_done(&plan, version), RECORDS * EPOCHS);
        assert_int_equal(plan_epochs_done(&plan, version), EPOCHS);
        for (int e = 0; e < EPOCHS; e++) {
            for (uint64_t r = 0; r < RECORDS; r++) {
                assert_int_equal(counts[e][r], 1);
            }
        }
    }
}

static void a_step_is_as_large_as_its_generation_makes_it(void **state)
{
    (void)state;
    struct plan plan = plan_of(100, 2, 3, 0);
    plan.per_worker = true;
    assert_int_equal(plan_full(&plan), 3);
    plan.anchor = (struct shard_anchor){.version = 4, .position = 24, .next = 3, .later = 6};
    assert_int_equal(plan_full(&plan), 6);
    assert_int_equal(plan_records_done(&plan, 4), 24);
    assert_int_equal(plan_step(&plan, 5).count, 6);
    struct plan_step step = plan_step(&plan, 6);
    assert_true(step.first == 30 && step.count == 12 && step.micro_batches == 6);
    plan.max_steps = 5;
    assert_int_equal(plan_steps(&plan), 5);
    const struct plan fixed = plan_of(100, 2, 3, 0);
    assert_false(plan_anchor_fits(&fixed, &plan.anchor, 4));
    assert_true(plan_anchor_fits(&fixed, &fixed.anchor, 4));
    assert_false(plan_anchor_fits(&plan, &fixed.anchor, 0));
}

static void wrong_plans_are_said(void **state)
{
    (void)state;
    struct plan good = plan_of(10, 2, 4, 0), bad = good;
    assert_null(plan_check(&good));
    bad.records = 0;
    assert_non_null(plan_check(&bad));
    bad = good;
    bad.batch = 1u << 31;
    assert_non_null(strstr(plan_check(&bad), "4294967295"));
    bad = good;
    bad.records = UINT64_MAX / 4;
    assert_non_null(strstr(plan_check(&bad), "2^63"));
    bad.epochs = 1;
    assert_null(plan_check(&bad));
}

static void plans_are_told_apart(void **state)
{
    (void)state;
    struct plan a = plan_of(10, 2, 4, 0), b = a;
    assert_true(plan_digest(&a) == plan_digest(&b));
    b.seed++;
    assert_true(plan_digest(&a) != plan_digest(&b));
    b = a;
    b.batch = 4, b.micro_batches = 2;
    assert_true(plan_digest(&a) != plan_digest(&b));
    b = a;
    b.per_worker = true;
    assert_true(plan_digest(&a) != plan_digest(&b));
    a = b;
    b.anchor = (struct shard_anchor){.version = 1, .position = 8, .next = 4, .later = 8};
    assert_true(plan_digest(&a) == plan_digest(&b));
}

static void ask_beyond_the_end(void)
{
    struct plan plan = plan_of(10, 2, 4, 0);
    (void)plan_step(&plan, plan_steps(&plan) + 1);
}

static void ask_beyond_the_limit(void)
{
    struct plan plan = plan_of(10, 2, 4, 0);
    plan.max_steps = 1;
    (void)plan_step(&plan, 2);
}

static void ask_for_a_step_before_the_anchor(void)
{
    struct plan plan = plan_of(10, 2, 1, 0);
    plan.per_worker = true;
    plan.anchor = (struct shard_anchor){.version = 2, .position = 4, .next = 1, .later = 2};
    (void)plan_step(&plan, 2);
}

static void a_step_beyond_the_end_is_a_mistake(void **state)
{
    (void)state;
    assert_true(test_is_asserted(ask_beyond_the_end));
    assert_true(test_is_asserted(ask_beyond_the_limit));
    assert_true(test_is_asserted(ask_for_a_step_before_the_anchor));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_record_is_trained_once_an_epoch),
        cmocka_unit_test(worlds_change_nothing),
        cmocka_unit_test(shares_differ_by_one_pass),
        cmocka_unit_test(the_end_of_an_epoch_is_a_smaller_step),
        cmocka_unit_test(a_limit_ends_the_plan),
        cmocka_unit_test(the_global_batch_follows_the_workers),
        cmocka_unit_test(a_step_is_as_large_as_its_generation_makes_it),
        cmocka_unit_test(wrong_plans_are_said),
        cmocka_unit_test(plans_are_told_apart),
        cmocka_unit_test(a_step_beyond_the_end_is_a_mistake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
