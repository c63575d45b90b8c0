/* Fits y = 3 x - 1 with workers that may come and go: docs/elastic.md. Beside a coordinator, any
 * number of these, at any time:
 *     MUSTER_COORDINATOR=unix:/tmp/job MUSTER_COORDINATOR_TOKEN=… build/examples/elastic
 */
#include <muster/muster.h>

#include <stdio.h>

enum { RECORDS = 10007, EPOCHS = 5, BATCH = 16, MICRO_BATCHES = 8 };

/* Computes the gradient of the mean squared error over the records of a pass, of y = 3 x - 1. The
 * model is slope and offset. */
static void compute(const float *model, const struct muster_elastic_pass *pass, float *ret)
{
    ret[0] = ret[1] = 0;
    for (size_t i = 0; i < pass->record_count; i++) {
        float x = (float)pass->records[i] / RECORDS, y = 3 * x - 1;
        float error = model[0] * x + model[1] - y;
        ret[0] += 2 * error * x / (float)pass->record_count;
        ret[1] += 2 * error / (float)pass->record_count;
    }
}

static int train(struct muster_elastic *job, float *model, struct muster_err *err)
{
    struct muster_elastic_pass pass = MUSTER_ELASTIC_PASS_INIT;
    struct muster_elastic_piece piece = {model, 2 * sizeof *model};
    float gradient[2], mean[2];
    int r = muster_elastic_state(job, &piece, 1, err);
    while (r >= 0 && (r = muster_elastic_next(job, &pass, err)) == 1) {
        compute(model, &pass, gradient);
        r = muster_elastic_step(job, gradient, 2, MUSTER_F32, NULL, mean, err);
        if (r == 1) { /* the step is committed: every worker does the same */
            model[0] -= 0.5f * mean[0];
            model[1] -= 0.5f * mean[1];
        }
    }
    return r;
}

int main(void)
{
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_elastic_options options = MUSTER_ELASTIC_OPTIONS_INIT;
    struct muster_elastic *job;
    float model[2] = {0, 0};
    options.records = RECORDS, options.epochs = EPOCHS;
    options.batch = BATCH, options.micro_batches = MICRO_BATCHES, options.shuffle = 1;
    int r = muster_elastic_open(&options, &job, &err), opened = r >= 0;
    if (opened) {
        r = train(job, model, &err);
        muster_elastic_close(job);
    }
    if (r < 0) {
        (void)fprintf(stderr, "elastic: %s\n", err.text);
        return !opened && r == MUSTER_EGONE ? 0 : muster_code_exit(r); /* 0: the job is done */
    }
    (void)printf("y = %.6f x %+.6f\n", (double)model[0], (double)model[1]);
    return 0;
}
