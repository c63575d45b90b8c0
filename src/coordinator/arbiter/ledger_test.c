/* The ledger of a long job: its tail is bounded, and its content stays the same when the tail is
 * folded. */
#include "coordinator/arbiter/ledger.h"

#include "base/testing/test.h"

enum { STEPS = 400000 };

static const struct shard_dataset data = {
    .name = "a", .size = STEPS, .epochs = 2, .batch = 1, .micro_batches = 1};

static void commit(struct ledger *ledger, uint64_t version)
{
    struct shard_effects effects;
    struct muster_err err = MUSTER_ERR_INIT;
    const struct shard_range range = {0, (uint32_t)((version - 1) / STEPS), (version - 1) % STEPS,
                                      1};
    const struct wire_step step = {.version = version, .ranges = {&range, 1}};
    if (ledger_commit(ledger, &step, &effects, &err) < 0) {
        fail_msg("step %llu: %s", (unsigned long long)version, err.text);
    }
}

static void start(struct ledger *ledger)
{
    bool added;
    assert_int_equal(ledger_init(ledger, NULL), 0);
    assert_int_equal(ledger_add(ledger, &data, &added, NULL), 0);
}

static uint64_t done(const struct ledger *ledger)
{
    struct shard_progress progress;
    assert_true(shard_progress(ledger->shard, 0, &progress));
    return progress.epoch * progress.dataset.size + progress.epoch_done;
}

static void a_long_tail_is_folded(void **state)
{
    (void)state;
    struct ledger ledger;
    start(&ledger);
    for (uint64_t v = 1; v <= STEPS + 1; v++) {
        commit(&ledger, v);
        assert_true(ledger.tail.used <= LEDGER_TAIL_MAX);
    }
    assert_true(ledger.first > 0 && ledger.first < ledger.version);
    assert_int_equal(done(&ledger), STEPS + 1);
    assert_int_equal(ledger_set_checkpoint(&ledger, ledger.version - 1, NULL), 0);
    commit(&ledger, STEPS + 2);
    assert_int_equal(ledger_cut(&ledger, STEPS, NULL), 0);
    assert_int_equal(ledger.version, STEPS);
    assert_int_equal(done(&ledger), STEPS);
    commit(&ledger, STEPS + 1);
    ledger_done(&ledger);
}

/* The log goes back to the beginning, because no checkpoint was made. */
static void what_was_folded_can_be_cut(void **state)
{
    (void)state;
    struct ledger ledger;
    start(&ledger);
    for (uint64_t v = 1; v <= STEPS; v++) {
        commit(&ledger, v);
    }
    assert_true(ledger.first > 0);
    assert_int_equal(ledger_cut(&ledger, 0, NULL), 0);
    assert_int_equal(ledger.version, 0);
    assert_int_equal(ledger.first, 0);
    assert_int_equal(done(&ledger), 0);
    commit(&ledger, 1);
    ledger_done(&ledger);
}

/* Of seven checkpoints the last ones are kept: the ledger can go back to each of them, one after
 * the other. */
static void it_goes_back_to_older_checkpoints(void **state)
{
    (void)state;
    struct ledger ledger;
    enum { LAST = 7 };
    start(&ledger);
    for (uint64_t v = 1; v <= LAST; v++) {
        commit(&ledger, v);
        assert_int_equal(ledger_set_checkpoint(&ledger, v, NULL), 0);
    }
    assert_int_equal(ledger.older.count, OLDER_MAX);
    for (uint64_t v = LAST - 1; v >= LAST - OLDER_MAX; v--) {
        assert_int_equal(ledger_cut(&ledger, v, NULL), 0);
        assert_int_equal(ledger.version, v);
        assert_int_equal(done(&ledger), v);
        commit(&ledger, v + 1);
    }
    assert_int_equal(ledger_cut(&ledger, 1, NULL), MUSTER_EDATA);
    ledger_done(&ledger);
}

static void it_is_read_as_it_was_written(void **state)
{
    (void)state;
    struct ledger ledger, again;
    struct buf bytes, bytes_again;
    buf_init(&bytes, 64 << 20);
    buf_init(&bytes_again, 64 << 20);
    start(&ledger);
    for (uint64_t v = 1; v <= STEPS - 1; v++) {
        commit(&ledger, v);
    }
    assert_true(ledger.first > 0);
    ledger_write(&ledger, &bytes);
    start(&again);
    assert_int_equal(ledger_read(&again, (const uint8_t *)bytes.data, bytes.used, NULL), 0);
    assert_int_equal(again.version, ledger.version);
    assert_int_equal(done(&again), STEPS - 1);
    ledger_write(&again, &bytes_again);
    assert_int_equal(bytes_again.used, bytes.used);
    assert_memory_equal(bytes_again.data, bytes.data, bytes.used);
    commit(&again, STEPS);
    buf_done(&bytes);
    buf_done(&bytes_again);
    ledger_done(&ledger);
    ledger_done(&again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_tail_is_folded),
        cmocka_unit_test(what_was_folded_can_be_cut),
        cmocka_unit_test(it_goes_back_to_older_checkpoints),
        cmocka_unit_test(it_is_read_as_it_was_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
