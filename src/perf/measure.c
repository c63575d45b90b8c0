/* Times one collective over a range of sizes, and checks its results. Layer: program. */
#include "perf/perf.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_SAMPLES = 100000, ROUND_CALLS = 8, SMALL_BYTES = 1024, BATCH = 32, UNTOUCHED = 0x55 };

struct bench {
    struct muster_comm *comm;
    const struct perf_options *options;
    int size;
    size_t unit;
    char *in;
    char *out;
    double *samples;
};

static double now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* `bytes` are those of the whole operation, as nccl-tests counts them: the blocks of all ranks
 * together if there are blocks. */
static size_t count_of(const struct bench *b, size_t bytes)
{
    enum muster_collective k = b->options->kind;
    bool blocks = k == MUSTER_ALL_GATHER || k == MUSTER_REDUCE_SCATTER || k == MUSTER_ALL_TO_ALL ||
                  k == MUSTER_GATHER || k == MUSTER_SCATTER;
    return bytes / b->unit / (blocks ? (size_t)b->size : 1);
}

/* The collective is run in place if its output is in the same place on all ranks. */
static char *output_of(const struct bench *b)
{
    enum muster_collective k = b->options->kind;
    bool in_place = k == MUSTER_ALL_REDUCE || k == MUSTER_REDUCE || k == MUSTER_BROADCAST;
    return in_place ? b->in : b->out;
}

static int call_once(struct bench *b, size_t count, struct muster_err *err)
{
    struct muster_call call = {.struct_size = sizeof(struct muster_call),
                               .kind = b->options->kind,
                               .type = b->options->type,
                               .op = b->options->op,
                               .in = b->in,
                               .out = output_of(b),
                               .count = count};
    return muster_run(b->comm, &call, err);
}

/* Takes one timed sample: a call, or a few calls if one is too short for the clock. */
static int sample(struct bench *b, size_t bytes, double *ret_us, struct muster_err *err)
{
    size_t count = count_of(b, bytes);
    bool touch = b->options->touch;
    int batch = bytes <= SMALL_BYTES && !touch ? BATCH : 1;
    if (touch) {
        memset(b->in, 0, bytes);
    }
    double start = now_us();
    for (int i = 0; i < batch; i++) {
        int r = call_once(b, count, err);
        if (r < 0) {
            return r;
        }
    }
    *ret_us = (now_us() - start) / batch;
    volatile char sink = 0;
    for (size_t i = 0; touch && i < bytes; i += 64) {
        sink = (char)(sink + b->in[i]);
    }
    return 0;
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

/* Rank 0 decides when there are enough samples. */
static int take_samples(struct bench *b, size_t bytes, int *ret_num, struct muster_err *err)
{
    double warm, end = now_us() + b->options->seconds * 1e6;
    int32_t enough = 0;
    int num = 0, r = sample(b, bytes, &warm, err);
    while (r == 0 && !enough) {
        for (int i = 0; i < ROUND_CALLS && r == 0 && num < MAX_SAMPLES; i++) {
            r = sample(b, bytes, &b->samples[num], err);
            num++;
        }
        enough = now_us() >= end || num >= MAX_SAMPLES;
        r = r < 0 ? r : muster_broadcast(b->comm, &enough, 1, MUSTER_I32, 0, err);
    }
    *ret_num = num;
    return r;
}

/* Returns the elements of the input; if every rank has a block in it, those of all blocks. */
static size_t elements_of(const struct bench *b, size_t count)
{
    enum muster_collective k = b->options->kind;
    bool blocks = k == MUSTER_REDUCE_SCATTER || k == MUSTER_ALL_TO_ALL || k == MUSTER_SCATTER;
    return blocks ? count * (size_t)b->size : count;
}

/* Makes the measured call once, with known elements in the input and none of them in the output,
 * and counts the wrong elements of all ranks. */
static int count_wrong(struct bench *b, size_t bytes, size_t *ret, struct muster_err *err)
{
    size_t count = count_of(b, bytes);
    int rank = muster_comm_rank(b->comm);
    perf_fill(b->options, rank, elements_of(b, count), b->in);
    memset(b->out, UNTOUCHED, bytes);
    int r = call_once(b, count, err);
    int64_t wrong = r < 0 ? 0 : (int64_t)perf_count_wrong(b->options, rank, count, output_of(b));
    memset(b->in, 0, bytes);
    r = r < 0 ? r : muster_all_reduce(b->comm, &wrong, &wrong, 1, MUSTER_I64, MUSTER_SUM, err);
    *ret = (size_t)wrong;
    return r;
}

static int measure_size(struct bench *b, size_t bytes, struct perf_result *ret,
                        struct muster_err *err)
{
    int num = 0;
    size_t wrong = 0;
    int r = count_wrong(b, bytes, &wrong, err);
    r = r < 0 ? r : take_samples(b, bytes, &num, err);
    if (r < 0) {
        return r;
    }
    qsort(b->samples, (size_t)num, sizeof *b->samples, by_value);
    *ret = (struct perf_result){.bytes = bytes,
                                .calls = (size_t)num,
                                .p50_us = b->samples[num / 2],
                                .p99_us = b->samples[(size_t)num * 99 / 100],
                                .least_us = b->samples[0],
                                .most_us = b->samples[num - 1],
                                .wrong = wrong};
    return 0;
}

static int get_buffers(struct bench *b, struct muster_err *err)
{
    size_t bytes = b->options->most_bytes + 64;
    b->samples = calloc(MAX_SAMPLES, sizeof *b->samples);
    b->out = calloc(1, bytes);
    if (b->options->direct) {
        void *memory;
        int r = muster_comm_alloc(b->comm, bytes, &memory, err);
        b->in = r < 0 ? NULL : memory;
        return r;
    }
    b->in = calloc(1, bytes);
    return b->samples && b->out && b->in
               ? 0
               : muster_fail(err, MUSTER_ENOMEM, "no memory for buffers of %zu bytes", bytes);
}

int perf_measure(struct muster_comm *comm, const struct perf_options *options,
                 struct perf_result *ret, struct muster_err *err)
{
    struct bench b = {.comm = comm,
                      .options = options,
                      .size = muster_comm_size(comm),
                      .unit = muster_type_bytes(options->type)};
    int num = 0, r = get_buffers(&b, err);
    for (size_t bytes = options->least_bytes;
         r == 0 && bytes <= options->most_bytes && num < PERF_MAX_SIZES;
         bytes = bytes ? bytes * 2 : 8) {
        r = measure_size(&b, bytes, &ret[num], err);
        num += r == 0;
    }
    if (!options->direct) {
        free(b.in);
    }
    free(b.out);
    free(b.samples);
    return r < 0 ? r : num;
}
