/* A rank of a job that is restarted from its newest checkpoint: restarted PARAMETERS COMPUTE_US
 * MICRO_BATCHES CHECKPOINT EVERY
 *
 * Rank and peers come from the environment. Rank 0 writes CHECKPOINT after each EVERY steps (0:
 * never), aside and renamed, not made durable: processes die here, hosts do not. Computing is
 * sleeping, as with a device. Prints "step VERSION WORKERS TIME_NS" for each step.
 */
#include <muster/muster.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct work {
    size_t parameters;
    long compute_us;
    size_t micro_batches;
    const char *path;
    uint64_t every;
    uint64_t version;
    float *model;
    float *gradient;
    float *parts;
    float *mean;
};

static void print_step(uint64_t version, int size)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    (void)printf("step %" PRIu64 " %d %lld\n", version, size,
                 (long long)now.tv_sec * 1000000000 + now.tv_nsec);
    (void)fflush(stdout);
}

/* Reads the checkpoint. Without one the job is at its beginning. */
static int read_checkpoint(struct work *w)
{
    FILE *file = fopen(w->path, "rb");
    if (!file) {
        return 0;
    }
    bool whole = fread(&w->version, sizeof w->version, 1, file) == 1 &&
                 fread(w->model, sizeof *w->model, w->parameters, file) == w->parameters;
    (void)fclose(file);
    return whole ? 0 : MUSTER_EIO;
}

static int write_checkpoint(const struct work *w)
{
    char aside[4096];
    (void)snprintf(aside, sizeof aside, "%s.new", w->path);
    FILE *file = fopen(aside, "wb");
    bool whole = file && fwrite(&w->version, sizeof w->version, 1, file) == 1 &&
                 fwrite(w->model, sizeof *w->model, w->parameters, file) == w->parameters;
    whole = (!file || fclose(file) == 0) && whole;
    return whole && rename(aside, w->path) == 0 ? 0 : MUSTER_EIO;
}

static void compute(const struct work *w, size_t count)
{
    struct timespec pause = {0, w->compute_us * 1000};
    for (size_t part = 0; part < count; part++) {
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
        float *to = w->parts + part * w->parameters, share = 1.0f / (float)w->micro_batches;
        for (size_t i = 0; i < w->parameters; i++) {
            to[i] = w->gradient[i] * share;
        }
    }
}

static int step(struct work *w, struct muster_comm *comm, struct muster_err *err)
{
    size_t rank = (size_t)muster_comm_rank(comm), size = (size_t)muster_comm_size(comm);
    size_t first = w->micro_batches * rank / size;
    size_t count = w->micro_batches * (rank + 1) / size - first;
    compute(w, count);
    int r = muster_all_reduce_parts(comm, w->parts, first, count, w->micro_batches, w->mean,
                                    w->parameters, MUSTER_F32, MUSTER_SUM, err);
    for (size_t i = 0; r == 0 && i < w->parameters; i++) {
        w->model[i] -= 0.01f * w->mean[i];
    }
    w->version += r == 0;
    return r;
}

static int train(struct work *w, struct muster_err *err)
{
    struct muster_comm *comm;
    int r = muster_comm_from_env(&comm, err);
    if (r < 0) {
        return r;
    }
    r = read_checkpoint(w);
    while (r == 0) {
        r = step(w, comm, err);
        if (r == 0) {
            print_step(w->version, muster_comm_size(comm));
        }
        if (r == 0 && muster_comm_rank(comm) == 0 && w->every > 0 && w->version % w->every == 0) {
            r = write_checkpoint(w);
        }
    }
    muster_comm_free(comm);
    return r;
}

int main(int count, char **words)
{
    struct muster_err err = MUSTER_ERR_INIT;
    if (count != 6) {
        return 64;
    }
    struct work w = {.parameters = strtoull(words[1], NULL, 10),
                     .compute_us = strtol(words[2], NULL, 10),
                     .micro_batches = strtoull(words[3], NULL, 10),
                     .path = words[4],
                     .every = strtoull(words[5], NULL, 10)};
    w.model = calloc(w.parameters, sizeof *w.model);
    w.gradient = calloc(w.parameters, sizeof *w.gradient);
    w.parts = calloc(w.micro_batches * w.parameters, sizeof *w.parts);
    w.mean = calloc(w.parameters, sizeof *w.mean);
    for (size_t i = 0; w.gradient && i < w.parameters; i++) {
        w.gradient[i] = (float)(i % 7) - 3;
    }
    int r = w.model && w.gradient && w.parts && w.mean ? train(&w, &err) : MUSTER_ENOMEM;
    (void)fprintf(stderr, "%s\n", err.text);
    free(w.model);
    free(w.gradient);
    free(w.parts);
    free(w.mean);
    return muster_code_exit(r);
}
