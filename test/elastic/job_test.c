/* Workers of one job, each a thread of this process: whichever workers join and leave, every record
 * is trained once in every epoch, on all of them. */
#include "server.h"
#include "trainee.h"

#include "base/testing/test.h"
#include "base/testing/test_wait.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RECORDS = 29, EPOCHS = 3, BATCH = 2, MICRO_BATCHES = 5, STEPS = 3 * EPOCHS, WORKERS = 3 };
enum { ENDLESS = 1 << 20 }; /* epochs of a job that ends as its workers leave */

struct scene {
    struct server *server;
    struct trainee workers[WORKERS];
};

static int set_up(void **state)
{
    struct scene *s = calloc(1, sizeof *s);
    assert_non_null(s);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;
    if (s->server) {
        server_stop(s->server);
    }
    free(s);
    return 0;
}

static void serve(struct scene *s, uint32_t first_size, uint32_t epochs)
{
    const struct server_options options = {1, first_size, WORKERS};
    s->server = server_start(&options);
    for (int i = 0; i < WORKERS; i++) {
        trainee_init(&s->workers[i], server_address(s->server), RECORDS, epochs, BATCH,
                     MICRO_BATCHES);
    }
}

static void check_finished(const struct trainee *t)
{
    assert_string_equal(t->err.text, "");
    assert_int_equal(t->result, 0);
    assert_true(t->info.finished);
    assert_int_equal(t->info.version, STEPS);
    assert_int_equal(t->info.records_done, RECORDS * EPOCHS);
    assert_int_equal(t->info.records_all, RECORDS * EPOCHS);
    assert_int_equal(trainee_count_wrong(t, STEPS), 0);
}

static void wait_for_version(struct trainee *t, uint64_t version)
{
    for (int64_t end = 0; atomic_load(&t->version) < version;) {
        assert_true(test_turn(&end));
    }
}

static void wait_for_size(struct trainee *t, int size)
{
    for (int64_t end = 0; atomic_load(&t->size) != size;) {
        assert_true(test_turn(&end));
    }
}

static void ask_to_leave(struct trainee *t)
{
    muster_elastic_leave(atomic_load(&t->job));
}

static void check_left(const struct trainee *t)
{
    assert_string_equal(t->err.text, "");
    assert_int_equal(t->result, 0);
    assert_true(t->info.left);
    assert_int_equal(trainee_count_wrong(t, t->info.version), 0);
}

/* ---- A bit that changes by itself ---- */

enum { FLIP_AT = 4 }; /* the step in which the bit changes; a digest is due with that step */

static void flip_a_bit(struct trainee *t, const struct muster_elastic_pass *pass)
{
    uint64_t bits;
    if (pass->version == FLIP_AT && !t->user) {
        memcpy(&bits, &t->weights[7], sizeof bits);
        bits ^= UINT64_C(1) << 51;
        memcpy(&t->weights[7], &bits, sizeof bits);
        t->user = t; /* once */
    }
}

static void start_with_digests(struct scene *s, int workers)
{
    serve(s, (uint32_t)workers, EPOCHS);
    for (int i = 0; i < workers; i++) {
        s->workers[i].options.digest_steps = 1;
        s->workers[i].at_pass = i == 1 ? flip_a_bit : NULL;
        trainee_start(&s->workers[i]);
    }
    for (int i = 0; i < workers; i++) {
        trainee_join(&s->workers[i]);
    }
}

/* The passes that it computed with the wrong state are dropped; all three workers end with every
 * record. */
static void a_bit_that_changed_by_itself_is_healed_from_the_others(void **state)
{
    struct scene *s = *state;
    start_with_digests(s, WORKERS);
    for (int i = 0; i < WORKERS; i++) {
        check_finished(&s->workers[i]);
        assert_int_equal(s->workers[i].info.diverged, 1);
        assert_int_equal(s->workers[i].info.diverged_version, FLIP_AT - 1);
        assert_int_equal(s->workers[i].info.diverged_rank, s->workers[1].info.rank);
    }
}

static void of_two_nobody_knows_which_one_is_right(void **state)
{
    struct scene *s = *state;
    start_with_digests(s, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(s->workers[i].result, MUSTER_EFAILED);
        assert_non_null(
            strstr(s->workers[i].err.text, "the states of 2 workers differ after step 3"));
    }
}

/* ---- Jobs that nobody disturbs ---- */

static void one_worker_trains_every_record(void **state)
{
    struct scene *s = *state;
    serve(s, 1, EPOCHS);
    trainee_run(&s->workers[0]);
    check_finished(&s->workers[0]);
    assert_int_equal(s->workers[0].passes, EPOCHS * 15);
    for (int64_t end = 0; !server_is_done(s->server);) {
        assert_true(test_turn(&end));
    }
    assert_int_equal(server_version(s->server), STEPS);
}

static void several_share_the_passes(void **state)
{
    struct scene *s = *state;
    uint64_t passes = 0;
    serve(s, WORKERS, EPOCHS);
    for (int i = 0; i < WORKERS; i++) {
        trainee_start(&s->workers[i]);
    }
    for (int i = 0; i < WORKERS; i++) {
        trainee_join(&s->workers[i]);
        check_finished(&s->workers[i]);
        assert_int_equal(s->workers[i].info.size, WORKERS);
        passes += s->workers[i].passes;
    }
    assert_int_equal(passes, EPOCHS * 15); /* each once */
}

/* ---- Steps of several sums ---- */

static void steps_of_several_sums_train_every_record(void **state)
{
    struct scene *s = *state;
    uint64_t passes = 0;
    serve(s, WORKERS, EPOCHS);
    for (int i = 0; i < WORKERS; i++) {
        s->workers[i].sums = true;
        trainee_start(&s->workers[i]);
    }
    for (int i = 0; i < WORKERS; i++) {
        trainee_join(&s->workers[i]);
        check_finished(&s->workers[i]);
        passes += s->workers[i].passes;
    }
    assert_int_equal(passes, EPOCHS * 15); /* each once */
}

static void a_step_of_sums_is_put_back_when_workers_come_and_go(void **state)
{
    struct scene *s = *state;
    serve(s, 2, ENDLESS);
    for (int i = 0; i < WORKERS; i++) {
        s->workers[i].sums = true;
    }
    trainee_start(&s->workers[0]);
    trainee_start(&s->workers[1]);
    wait_for_version(&s->workers[0], 4);
    trainee_start(&s->workers[2]);
    wait_for_size(&s->workers[0], 3);
    wait_for_version(&s->workers[2], 8);
    for (int i = 0; i < WORKERS; i++) {
        ask_to_leave(&s->workers[i]);
        trainee_join(&s->workers[i]);
        check_left(&s->workers[i]);
    }
}

/* The worker that sees it first ends; the other one may go on alone. */
static void who_brings_another_number_of_sums_is_told(void **state)
{
    struct scene *s = *state;
    int told = 0;
    serve(s, 2, EPOCHS);
    s->workers[0].sums = true;
    trainee_start(&s->workers[0]);
    trainee_start(&s->workers[1]);
    for (int i = 0; i < 2; i++) {
        trainee_join(&s->workers[i]);
        told += strstr(s->workers[i].err.text, "another number of sums") != NULL;
    }
    assert_true(told >= 1);
}

/* ---- Workers that join and leave ---- */

static void a_worker_joins_with_the_state_of_the_others(void **state)
{
    struct scene *s = *state;
    serve(s, 1, ENDLESS);
    trainee_start(&s->workers[0]);
    wait_for_version(&s->workers[0], 4);
    trainee_start(&s->workers[1]);
    wait_for_size(&s->workers[0], 2);
    wait_for_version(&s->workers[1], 8);
    for (int i = 0; i < 2; i++) {
        ask_to_leave(&s->workers[i]);
        trainee_join(&s->workers[i]);
        check_left(&s->workers[i]);
    }
    assert_true(s->workers[1].info.version >= 8);
}

static void who_leaves_is_not_missed(void **state)
{
    struct scene *s = *state;
    serve(s, 2, ENDLESS);
    trainee_start(&s->workers[0]);
    trainee_start(&s->workers[1]);
    wait_for_size(&s->workers[0], 2);
    ask_to_leave(&s->workers[0]);
    trainee_join(&s->workers[0]);
    check_left(&s->workers[0]);
    wait_for_size(&s->workers[1], 1);
    wait_for_version(&s->workers[1], s->workers[0].info.version + 5);
    ask_to_leave(&s->workers[1]);
    trainee_join(&s->workers[1]);
    check_left(&s->workers[1]);
}

/* Trains two steps, then calls muster_elastic_close without leaving before: the other worker trains
 * the records that this one has received. */
static int until_three(struct trainee *t)
{
    struct muster_elastic_pass pass = MUSTER_ELASTIC_PASS_INIT;
    struct muster_elastic *job = NULL;
    double gradient[RECORDS] = {0}, mean[RECORDS];
    const struct muster_elastic_piece piece = {t->weights, sizeof t->weights};
    int r = muster_elastic_open(&t->options, &job, &t->err);
    r = r < 0 ? r : muster_elastic_state(job, &piece, 1, &t->err);
    while (r >= 0 && (r = muster_elastic_next(job, &pass, &t->err)) == 1 && pass.version < 3) {
        for (size_t i = 0; i < pass.record_count; i++) {
            gradient[pass.records[i]] = 1.0 / (double)pass.record_count;
        }
        r = muster_elastic_step(job, gradient, RECORDS, MUSTER_F64, NULL, mean, &t->err);
        memset(gradient, 0, sizeof gradient);
    }
    muster_elastic_close(job);
    return r;
}

static void the_passes_of_one_that_closes_are_taken_over(void **state)
{
    struct scene *s = *state;
    serve(s, 2, EPOCHS);
    trainee_start(&s->workers[0]);
    assert_int_equal(until_three(&s->workers[1]), 1);
    trainee_join(&s->workers[0]);
    check_finished(&s->workers[0]);
    assert_int_equal(s->workers[0].info.size, 1);
}

/* ---- The coordinator ---- */

static void a_lost_connection_loses_no_step(void **state)
{
    struct scene *s = *state;
    serve(s, 2, ENDLESS);
    trainee_start(&s->workers[0]);
    trainee_start(&s->workers[1]);
    for (uint64_t v = 5; v <= 50; v += 5) {
        wait_for_version(&s->workers[0], v);
        server_hang_up(s->server);
    }
    for (int i = 0; i < 2; i++) {
        ask_to_leave(&s->workers[i]);
        trainee_join(&s->workers[i]);
        check_left(&s->workers[i]);
    }
}

/* trainee.user points to a flag, for which the worker waits in the second step. */
static void wait_in_the_second_step(struct trainee *t, const struct muster_elastic_pass *pass)
{
    for (int64_t end = 0; pass->version == 2 && !atomic_load((_Atomic int *)t->user);) {
        assert_true(test_turn(&end));
    }
}

static void refusals_are_said(void **state)
{
    struct scene *s = *state;
    struct trainee *a = &s->workers[0], *b = &s->workers[1];
    _Atomic int goes_on = 0;
    serve(s, 1, EPOCHS);
    a->at_pass = wait_in_the_second_step;
    a->user = &goes_on;
    a->options.token = "00000000000000000000000000000000000000000000000000000000000000aB";
    trainee_run(a);
    assert_int_equal(a->result, MUSTER_EUNAUTH);
    a->options.token = "short";
    trainee_run(a);
    assert_int_equal(a->result, MUSTER_EINVAL);
    assert_non_null(strstr(a->err.text, "MUSTER_COORDINATOR_TOKEN"));
    a->options.token = ""; /* started by hand, as if it was not a worker */
    trainee_run(a);
    assert_int_equal(a->result, MUSTER_EINVAL);
    assert_non_null(strstr(a->err.text, "is not set"));
    assert_non_null(strstr(a->err.text, "muster train -- COMMAND"));
    a->options.token = b->options.token;
    a->options.environment = 7;
    a->err.text[0] = 0;
    trainee_start(a);
    wait_for_version(a, 1);
    b->options.batch = BATCH + 1;
    trainee_run(b);
    assert_int_equal(b->result, MUSTER_ECONFLICT);
    assert_non_null(strstr(b->err.text, "batch"));
    b->options.batch = BATCH;
    b->options.environment = 8;
    b->err.text[0] = 0;
    trainee_run(b);
    assert_int_equal(b->result, MUSTER_ECONFLICT);
    assert_non_null(strstr(b->err.text, "environment"));
    atomic_store(&goes_on, 1);
    trainee_join(a);
    check_finished(a);
}

static void an_address_that_leads_nowhere_is_said(void **state)
{
    struct scene *s = *state;
    struct trainee *t = &s->workers[0];
    static const char *const wrong[] = {"",           "unix:",          "tcp:host",   "tcp::80",
                                        "tcp:host:0", "tcp:host:65536", "http://host"};
    serve(s, 1, EPOCHS);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        t->options.coordinator = wrong[i];
        trainee_run(t);
        assert_int_equal(t->result, MUSTER_EINVAL);
    }
    t->options.coordinator = "unix:/nowhere/at/all";
    t->options.connect_ms = 30;
    trainee_run(t);
    assert_int_equal(t->result, MUSTER_EUNAVAIL);
    assert_non_null(strstr(t->err.text, "/nowhere/at/all"));
}

/* The variable does no harm to such a worker: it may be meant for the job's leases. */
static void nothing_is_set_aside_where_passes_are_whole(void **state)
{
    struct scene *s = *state;
    struct trainee *said = &s->workers[0], *set = &s->workers[1];
    serve(s, 1, EPOCHS);
    said->options.whole_passes = said->options.set_aside = set->options.whole_passes = 1;
    trainee_run(said);
    assert_int_equal(said->result, MUSTER_EINVAL);
    assert_non_null(strstr(said->err.text, "set_aside"));
    assert_int_equal(setenv("MUSTER_SET_ASIDE", "1", 1), 0);
    trainee_run(set);
    unsetenv("MUSTER_SET_ASIDE");
    check_finished(set);
}

/* ---- The user's side ---- */

static int have_enough(void *user)
{
    return atomic_load((_Atomic int *)user);
}

/* The first generation waits for another worker, and this worker waits for the generation. */
static void a_wait_can_be_interrupted_and_taken_up_again(void **state)
{
    struct scene *s = *state;
    struct muster_elastic_pass pass = MUSTER_ELASTIC_PASS_INIT;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_elastic *job;
    _Atomic int enough = 1;
    serve(s, 2, EPOCHS);
    s->workers[0].options.interrupted = NULL;
    s->workers[1].options.interrupted = have_enough;
    s->workers[1].options.user = &enough;
    atomic_store(&enough, 0);
    assert_int_equal(muster_elastic_open(&s->workers[1].options, &job, &err), 0);
    atomic_store(&enough, 1);
    assert_int_equal(muster_elastic_next(job, &pass, &err), MUSTER_EINTERRUPTED);
    assert_int_equal(muster_elastic_next(job, &pass, &err), MUSTER_EINTERRUPTED);
    atomic_store(&enough, 0);
    muster_elastic_close(job);
    trainee_start(&s->workers[0]);
    trainee_start(&s->workers[2]);
    trainee_join(&s->workers[0]);
    trainee_join(&s->workers[2]);
    check_finished(&s->workers[0]);
    check_finished(&s->workers[2]);
}

static void pieces_that_are_null_are_not_called_too_many(void **state)
{
    struct scene *s = *state;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_elastic *job;
    serve(s, 1, EPOCHS);
    assert_int_equal(muster_elastic_open(&s->workers[0].options, &job, &err), 0);
    assert_int_equal(muster_elastic_state(job, NULL, 3, &err), MUSTER_EINVAL);
    assert_non_null(strstr(err.text, "NULL"));
    assert_int_equal(muster_elastic_state(job, NULL, (size_t)1 << 20, &err), MUSTER_EINVAL);
    assert_non_null(strstr(err.text, "at most 65536 pieces"));
    assert_int_equal(muster_elastic_state(job, NULL, 0, &err), 0);
    muster_elastic_close(job);
}

static void calls_out_of_order_are_refused(void **state)
{
    struct scene *s = *state;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_elastic_pass pass = MUSTER_ELASTIC_PASS_INIT;
    struct muster_elastic *job;
    double gradient[RECORDS] = {0};
    serve(s, 1, EPOCHS);
    assert_int_equal(muster_elastic_open(&s->workers[0].options, &job, &err), 0);
    assert_int_equal(muster_elastic_step(job, gradient, RECORDS, MUSTER_F64, NULL, gradient, &err),
                     MUSTER_EINVAL);
    assert_int_equal(muster_elastic_next(job, &pass, &err), 1);
    assert_int_equal(muster_elastic_step(job, NULL, RECORDS, MUSTER_F64, NULL, gradient, &err),
                     MUSTER_EINVAL);
    assert_int_equal(muster_elastic_sum(job, NULL, RECORDS, MUSTER_F64, gradient, &err),
                     MUSTER_EINVAL);
    assert_int_equal(muster_elastic_sum(job, gradient, RECORDS, MUSTER_F64, NULL, &err),
                     MUSTER_EINVAL);
    assert_non_null(strstr(err.text, "a place for the mean"));
    assert_int_equal(muster_elastic_step(job, gradient, RECORDS, MUSTER_I32, NULL, gradient, &err),
                     MUSTER_EINVAL);
    assert_int_equal(muster_elastic_step(job, gradient, RECORDS, MUSTER_F64, NULL, gradient, &err),
                     0);
    pass.struct_size = 0;
    assert_int_equal(muster_elastic_next(job, &pass, &err), MUSTER_EINVAL);
    muster_elastic_close(job);
    muster_elastic_close(NULL);
}

/* ---- What a step hands out ---- */

enum { ONES = 40, BF16_ONE = 0x3f80 };

/* Trains with gradients of ones in bf16, and with extras that name their pass. */
static int check_extras(struct trainee *t, struct muster_elastic *job)
{
    struct muster_elastic_pass pass = MUSTER_ELASTIC_PASS_INIT;
    uint16_t ones[ONES], mean[ONES];
    int r;
    while ((r = muster_elastic_next(job, &pass, &t->err)) == 1) {
        uint64_t name = pass.version * 100 + pass.micro_batch;
        for (int i = 0; i < ONES; i++) {
            ones[i] = BF16_ONE;
        }
        r = muster_elastic_step(job, pass.record_count > 0 ? ones : NULL, ONES, MUSTER_BF16, &name,
                                mean, &t->err);
        const uint64_t *names = muster_elastic_extras(job);
        for (uint32_t m = 0; r == 1 && m < pass.micro_batches; m++) {
            t->passes += names[m] != pass.version * 100 + m;
        }
        for (int i = 0; r == 1 && i < ONES; i++) {
            t->passes += mean[i] != BF16_ONE;
        }
        if (r < 0) {
            return r;
        }
    }
    return r;
}

static void *run_with_extras(void *context)
{
    struct trainee *t = context;
    struct muster_elastic *job = NULL;
    t->result = muster_elastic_open(&t->options, &job, &t->err);
    t->result = t->result < 0 ? t->result : check_extras(t, job);
    muster_elastic_close(job);
    return NULL;
}

/* `passes` counts wrong values here. */
static void extras_come_by_micro_batch_and_bf16_is_rounded_once(void **state)
{
    struct scene *s = *state;
    serve(s, 2, EPOCHS);
    for (int i = 0; i < 2; i++) {
        s->workers[i].options.extra_bytes = sizeof(uint64_t);
        assert_int_equal(
            pthread_create(&s->workers[i].thread, NULL, run_with_extras, &s->workers[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        trainee_join(&s->workers[i]);
        assert_string_equal(s->workers[i].err.text, "");
        assert_int_equal(s->workers[i].result, 0);
        assert_int_equal(s->workers[i].passes, 0);
    }
}

static void what_is_ahead_is_what_comes(void **state)
{
    struct scene *s = *state;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_elastic_pass pass = MUSTER_ELASTIC_PASS_INIT;
    struct muster_elastic *job;
    double gradient[RECORDS] = {0};
    uint64_t ahead[2 * RECORDS];
    size_t counts[20], at = 0;
    serve(s, 1, EPOCHS);
    assert_int_equal(muster_elastic_open(&s->workers[0].options, &job, &err), 0);
    assert_int_equal(muster_elastic_next(job, &pass, &err), 1);
    size_t found = muster_elastic_ahead(job, 20, ahead, 2 * RECORDS, counts);
    assert_int_equal(found, RECORDS + 5 * BATCH); /* 15 passes of this epoch, and 5 of the next */
    assert_int_equal(muster_elastic_ahead(job, 20, ahead, 3, counts), BATCH);
    (void)muster_elastic_ahead(job, 20, ahead, 2 * RECORDS, counts);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(pass.record_count, counts[i]);
        assert_memory_equal(pass.records, ahead + at, counts[i] * sizeof *ahead);
        at += counts[i];
        assert_true(muster_elastic_step(job, gradient, RECORDS, MUSTER_F64, NULL, gradient, &err) >=
                    0);
        assert_int_equal(muster_elastic_next(job, &pass, &err), 1);
    }
    muster_elastic_close(job);
}

static void a_forked_child_cannot_use_it(void **state)
{
    struct scene *s = *state;
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_elastic *job;
    int status = -1;
    serve(s, 1, EPOCHS);
    assert_int_equal(muster_elastic_open(&s->workers[0].options, &job, &err), 0);
    pid_t child = fork();
    if (child == 0) {
        struct muster_elastic_pass pass = MUSTER_ELASTIC_PASS_INIT;
        int r = muster_elastic_next(job, &pass, &err);
        muster_elastic_close(job);
        _exit(r == MUSTER_EINVAL ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    muster_elastic_close(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_bit_that_changed_by_itself_is_healed_from_the_others,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(of_two_nobody_knows_which_one_is_right, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_worker_trains_every_record, set_up, tear_down),
        cmocka_unit_test_setup_teardown(several_share_the_passes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(steps_of_several_sums_train_every_record, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_step_of_sums_is_put_back_when_workers_come_and_go, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(who_brings_another_number_of_sums_is_told, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_worker_joins_with_the_state_of_the_others, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(who_leaves_is_not_missed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_passes_of_one_that_closes_are_taken_over, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_lost_connection_loses_no_step, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refusals_are_said, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_address_that_leads_nowhere_is_said, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_is_set_aside_where_passes_are_whole, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_wait_can_be_interrupted_and_taken_up_again, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(pieces_that_are_null_are_not_called_too_many, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(calls_out_of_order_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(extras_come_by_micro_batch_and_bf16_is_rounded_once, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_is_ahead_is_what_comes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_forked_child_cannot_use_it, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
