/* A worker whose steps are timed: recovery elastic|plain PARAMETERS COMPUTE_US STEPS MICRO_BATCHES
 *
 * elastic: through muster/elastic.h, beside a coordinator. plain: the same sum of the same
 * gradients on a communicator from the environment, without manifest, barrier and coordinator.
 * Computing is sleeping, as with a device. RECOVERY_HOST: its address. RECOVERY_STATE: so many
 * bytes of state, beside the model, that joiners read. SIGTERM: it leaves. Prints "step VERSION
 * WORKERS TIME_NS" for each.
 *
 * recovery burn BYTES CPU_MS: a program that fills so much memory, and needs so much processor
 * time, as a worker that joins.
 */
#include <muster/muster.h>

#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct work {
    size_t parameters;
    long compute_us;
    uint64_t steps;
    uint32_t micro_batches;
    float *model;
    float *gradient;
    float *mean;
    char *state;
    size_t state_bytes;
};

static struct muster_elastic *job;

static void on_term(int number)
{
    (void)number;
    muster_elastic_leave(job);
}

static void compute(const struct work *w)
{
    struct timespec pause = {0, w->compute_us * 1000};
    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

/* Not inlined: if it were inlined twice, one copy might be vectorized and the other not, and their
 * difference would count as the cost of commit. */
__attribute__((noinline)) static void update(const struct work *w)
{
    for (size_t i = 0; i < w->parameters; i++) {
        w->model[i] -= 0.01f * w->mean[i];
    }
}

static void print_step(uint64_t version, int size)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    (void)printf("step %" PRIu64 " %d %lld\n", version, size,
                 (long long)now.tv_sec * 1000000000 + now.tv_nsec);
    (void)fflush(stdout);
}

static int train_elastic(const struct work *w, struct muster_err *err)
{
    struct muster_elastic_pass pass = MUSTER_ELASTIC_PASS_INIT;
    struct muster_elastic_piece pieces[] = {{w->model, w->parameters * sizeof *w->model},
                                            {w->state, w->state_bytes}};
    struct muster_elastic_options options = MUSTER_ELASTIC_OPTIONS_INIT;
    options.records = w->micro_batches;
    options.epochs = (uint32_t)w->steps;
    options.batch = 1;
    options.micro_batches = w->micro_batches;
    const char *host = getenv("RECOVERY_HOST");
    options.host = host ? host : "127.0.0.1";
    int r = muster_elastic_open(&options, &job, err);
    if (r < 0) {
        return r;
    }
    const struct sigaction leave = {.sa_handler = on_term};
    (void)sigaction(SIGTERM, &leave, NULL);
    r = muster_elastic_state(job, pieces, 2, err);
    while (r >= 0 && (r = muster_elastic_next(job, &pass, err)) == 1) {
        if (pass.record_count > 0) {
            compute(w);
        }
        r = muster_elastic_step(job, w->gradient, w->parameters, MUSTER_F32, NULL, w->mean, err);
        if (r == 1) {
            update(w);
            print_step(pass.version, pass.size);
        }
    }
    (void)signal(SIGTERM, SIG_IGN);
    muster_elastic_close(job);
    return r;
}

static int train_plain(const struct work *w, struct muster_err *err)
{
    struct muster_comm *comm;
    size_t total = w->micro_batches;
    int r = muster_comm_from_env(&comm, err);
    if (r < 0) {
        return r;
    }
    size_t rank = (size_t)muster_comm_rank(comm), size = (size_t)muster_comm_size(comm);
    size_t first = total * rank / size, count = total * (rank + 1) / size - first;
    float *parts = calloc(count * w->parameters + 1, sizeof *parts), share = 1.0f / (float)total;
    for (uint64_t step = 1; parts && r == 0 && step <= w->steps; step++) {
        for (size_t part = 0; part < count; part++) {
            compute(w);
            float *to = parts + part * w->parameters;
            for (size_t i = 0; i < w->parameters; i++) {
                to[i] = w->gradient[i] * share;
            }
        }
        r = muster_all_reduce_parts(comm, parts, first, count, total, w->mean, w->parameters,
                                    MUSTER_F32, MUSTER_SUM, err);
        update(w);
        print_step(step, (int)size);
    }
    free(parts);
    muster_comm_free(comm);
    return r;
}

/* Writes the state, because a model is written by the program that makes it. */
static bool make_state(struct work *w, const char *bytes)
{
    w->state_bytes = bytes ? strtoull(bytes, NULL, 10) : 0;
    w->state = malloc(w->state_bytes + 1);
    if (w->state) {
        memset(w->state, 1, w->state_bytes + 1);
    }
    return w->state != NULL;
}

static int burn(const char *bytes, const char *cpu_ms)
{
    struct work w = {0};
    bool made = make_state(&w, bytes);
    while (made && clock() < strtol(cpu_ms, NULL, 10) * (CLOCKS_PER_SEC / 1000)) {
    }
    free(w.state);
    return made ? 0 : 71;
}

int main(int count, char **words)
{
    struct muster_err err = MUSTER_ERR_INIT;
    if (count == 4 && strcmp(words[1], "burn") == 0) {
        return burn(words[2], words[3]);
    }
    if (count != 6) {
        return 64;
    }
    struct work w = {.parameters = strtoull(words[2], NULL, 10),
                     .compute_us = strtol(words[3], NULL, 10),
                     .steps = strtoull(words[4], NULL, 10),
                     .micro_batches = (uint32_t)strtoul(words[5], NULL, 10)};
    w.model = calloc(w.parameters, sizeof *w.model);
    w.gradient = calloc(w.parameters, sizeof *w.gradient);
    w.mean = calloc(w.parameters, sizeof *w.mean);
    if (!w.model || !w.gradient || !w.mean || !make_state(&w, getenv("RECOVERY_STATE"))) {
        return 71;
    }
    for (size_t i = 0; i < w.parameters; i++) {
        w.model[i] = 1; /* a joiner reads into existing pages, as when bandwidth is measured */
        w.gradient[i] = (float)(i % 7) - 3;
    }
    int r = strcmp(words[1], "plain") == 0 ? train_plain(&w, &err) : train_elastic(&w, &err);
    if (r < 0) {
        (void)fprintf(stderr, "%s\n", err.text);
    }
    free(w.model);
    free(w.gradient);
    free(w.mean);
    free(w.state);
    return r < 0 ? muster_code_exit(r) : 0;
}
