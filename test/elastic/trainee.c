/* See trainee.h. */
#include "trainee.h"

#include "client/plan/plan.h"
#include "server.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static struct plan plan_of(const struct trainee *t)
{
    return (struct plan){.records = t->options.records,
                         .seed = t->options.seed,
                         .epochs = t->options.epochs,
                         .batch = t->options.batch,
                         .micro_batches = t->options.micro_batches,
                         .shuffle = t->options.shuffle};
}

void trainee_init(struct trainee *t, const char *coordinator, uint64_t records, uint32_t epochs,
                  uint32_t batch, uint32_t micro_batches)
{
    const struct muster_elastic_options options = MUSTER_ELASTIC_OPTIONS_INIT;
    assert(records <= TRAINEE_RECORDS_MAX);
    memset(t, 0, sizeof *t);
    t->options = options;
    t->options.coordinator = coordinator;
    t->options.token = server_token();
    t->options.host = "127.0.0.1";
    t->options.records = records;
    t->options.epochs = epochs;
    t->options.batch = batch;
    t->options.micro_batches = micro_batches;
    t->options.shuffle = 1;
    t->options.seed = 5;
    t->err = (struct muster_err)MUSTER_ERR_INIT;
    t->info = (struct muster_elastic_info)MUSTER_ELASTIC_INFO_INIT;
}

/* Computes the gradient of the mean over the pass: 1 / n for each of its n records. */
static void compute(const struct trainee *t, const struct muster_elastic_pass *pass, double *ret)
{
    memset(ret, 0, t->options.records * sizeof *ret);
    for (size_t i = 0; i < pass->record_count; i++) {
        ret[pass->records[i]] += 1.0 / (double)pass->record_count;
    }
}

/* The mean has 1 / n for each of the step's n records; readers of the region that are too late may
 * see the change happen. */
__attribute__((no_sanitize("thread"))) static void update(struct trainee *t, const double *mean,
                                                          uint64_t version)
{
    struct plan plan = plan_of(t);
    uint32_t count = plan_step(&plan, version).count;
    volatile double *weights = t->weights;
    for (uint64_t i = 0; i < t->options.records; i++) {
        weights[i] += (double)(int64_t)(mean[i] * count + 0.5);
    }
}

/* Not instrumented, as in update(): readers may be late. */
__attribute__((no_sanitize("thread"))) static void put_back(struct trainee *t, const double *undo)
{
    volatile double *weights = t->weights;
    for (uint64_t i = 0; i < t->options.records; i++) {
        weights[i] = undo[i];
    }
}

/* Computes the gradients of all passes that this worker has in the step, one after the other;
 * returns the number of passes. */
static uint32_t compute_all(struct trainee *t, struct muster_elastic *job,
                            const struct muster_elastic_pass *pass, double *ret)
{
    uint64_t records[TRAINEE_RECORDS_MAX];
    size_t counts[TRAINEE_RECORDS_MAX] = {0};
    uint32_t count = pass->record_count > 0 ? pass->passes_left + 1 : 0;
    (void)muster_elastic_ahead(job, count, records, TRAINEE_RECORDS_MAX, counts);
    for (uint32_t i = 0, at = 0; i < count; at += (uint32_t)counts[i++]) {
        struct muster_elastic_pass one = *pass;
        one.records = records + at;
        one.record_count = counts[i];
        compute(t, &one, ret + i * t->options.records);
    }
    return count;
}

/* Makes a step of two updates: the second takes the first back and makes it again. */
static int train_by_sums(struct trainee *t, struct muster_elastic *job,
                         const struct muster_elastic_pass *pass, double *gradients, double *mean)
{
    double *undo = malloc(sizeof t->weights);
    assert(undo);
    memcpy(undo, t->weights, sizeof t->weights);
    uint32_t count = compute_all(t, job, pass, gradients);
    int r = 1;
    for (int i = 0; r == 1 && i < 2; i++) {
        r = muster_elastic_sum(job, count > 0 ? gradients : NULL, t->options.records, MUSTER_F64,
                               mean, &t->err);
        if (r == 1) {
            put_back(t, undo);
            update(t, mean, pass->version);
        }
    }
    r = r == 1 ? muster_elastic_commit(job, NULL, &t->err) : r;
    if (r == 1) {
        t->passes += count;
        atomic_store(&t->version, pass->version);
    } else {
        put_back(t, undo);
    }
    free(undo);
    return r;
}

static int train(struct trainee *t, struct muster_elastic *job, double *gradient)
{
    struct muster_elastic_pass pass = MUSTER_ELASTIC_PASS_INIT;
    double *mean = gradient + t->options.records * t->options.micro_batches;
    int r;
    while ((r = muster_elastic_next(job, &pass, &t->err)) == 1) {
        atomic_store(&t->size, pass.size);
        if (t->sums) {
            r = train_by_sums(t, job, &pass, gradient, mean);
            if (r < 0) {
                return r;
            }
            continue;
        }
        compute(t, &pass, gradient);
        t->passes += pass.record_count > 0;
        if (t->at_pass) {
            t->at_pass(t, &pass);
        }
        r = muster_elastic_step(job, pass.record_count > 0 ? gradient : NULL, t->options.records,
                                MUSTER_F64, NULL, mean, &t->err);
        if (r < 0) {
            return r;
        }
        if (r == 1) {
            update(t, mean, pass.version);
            atomic_store(&t->version, pass.version);
        }
    }
    return r;
}

void trainee_run(struct trainee *t)
{
    struct muster_elastic *job = NULL;
    const struct muster_elastic_piece piece = {t->weights, sizeof t->weights};
    t->result = muster_elastic_open(&t->options, &job, &t->err);
    if (t->result < 0) {
        return;
    }
    atomic_store(&t->job, job);
    double *gradient =
        calloc((t->options.micro_batches + 1) * t->options.records, sizeof *gradient);
    t->result = gradient ? muster_elastic_state(job, &piece, 1, &t->err) : MUSTER_ENOMEM;
    t->result = t->result < 0 ? t->result : train(t, job, gradient);
    (void)muster_elastic_query(job, &t->info, NULL);
    atomic_store(&t->job, NULL);
    muster_elastic_close(job);
    free(gradient);
}

static void *run(void *context)
{
    trainee_run(context);
    return NULL;
}

void trainee_start(struct trainee *t)
{
    int r = pthread_create(&t->thread, NULL, run, t);
    assert(r == 0);
}

void trainee_join(struct trainee *t)
{
    pthread_join(t->thread, NULL);
}

uint64_t trainee_count_wrong(const struct trainee *t, uint64_t version)
{
    struct plan plan = plan_of(t);
    double due[TRAINEE_RECORDS_MAX] = {0};
    uint64_t wrong = 0, records[TRAINEE_RECORDS_MAX];
    for (uint64_t v = 1; v <= version; v++) {
        struct plan_step step = plan_step(&plan, v);
        plan_records(&plan, plan_step_range(&plan, &step), records);
        for (uint32_t i = 0; i < step.count; i++) {
            due[records[i]]++;
        }
    }
    for (uint64_t i = 0; i < t->options.records; i++) {
        wrong += t->weights[i] < due[i] || t->weights[i] > due[i];
    }
    return wrong;
}
