/* libmuster and its peers side by side in the same processes. Virtual cores migrate, so that an
 * absolute figure is worth little: short slices of each alternate, a ping-pong probe before and
 * after each turn tells where the cores are (near: one cache; far: two), and only turns between
 * equal probes count. In every turn the limit is measured, too: what two cores need at least.
 *
 * Usage: mpirun -np N interleaved FROM_BYTES TO_BYTES SECONDS_PER_SIZE    prints one JSON object
 * per line. From 16 KiB up, where there is a core for each rank, every rank rewrites its buffer
 * before each call and reads it after, outside the time (touched); the same untouched is printed
 * apart.
 */
#include "interleaved.h"

#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_SLICES = 2000,
    PROBES = 100,
    NEAR_NS = 150,
    TOUCH_FROM_BYTES = 16 * 1024,
    TURNS = 3,
    NAP_US = 500,
};

static const char *const way_names[WAYS] = {"private", "direct", "mpi", "limit", "gloo"};
static const double slice_us = 1500;

struct figures {
    double kept[WAYS][MAX_SLICES];
    int num;
};

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void wait_for(struct bench *b, int rank)
{
    for (int spins = 0;
         (int)(atomic_load_explicit(&b->flags[rank].value, memory_order_acquire) - b->turn) < 0;
         spins++) {
        if (spins >= b->spins) {
            sched_yield();
        } else {
            __builtin_ia32_pause();
        }
    }
}

static void raise_flag(struct bench *b)
{
    atomic_store_explicit(&b->flags[b->rank].value, b->turn, memory_order_release);
}

/* Every rank writes a flag, then waits for the others: the minimum that any all-reduce can take. */
static void exchange_flags(struct bench *b)
{
    b->turn++;
    raise_flag(b);
    for (int r = 0; r < b->size; r++) {
        wait_for(b, r);
    }
}

/* Returns the round trip between ranks 0 and 1, in ns: the minimum of a few. If there are more
 * ranks than cores, these two have a core each meanwhile, and the others sleep. */
static double probe(struct bench *b)
{
    double least = 1e9;
    cpu_set_t before, own;
    (void)sched_getaffinity(0, sizeof before, &before);
    MPI_Barrier(MPI_COMM_WORLD);
    if (b->rank > 1) {
        b->turn += TURNS * PROBES;
        (void)usleep(NAP_US);
    } else if (b->oversubscribed) {
        CPU_ZERO(&own);
        CPU_SET(b->rank, &own);
        (void)sched_setaffinity(0, sizeof own, &own);
    }
    b->spins = SPINS;
    for (int turn = 0; turn < TURNS && b->rank < 2; turn++) {
        double start = now_us();
        for (int i = 0; i < PROBES; i++) {
            b->turn++;
            if (b->rank == 0) {
                raise_flag(b);
                wait_for(b, 1);
            } else {
                wait_for(b, 0);
                raise_flag(b);
            }
        }
        double ns = (now_us() - start) * 1e3 / PROBES;
        least = ns < least ? ns : least;
    }
    b->spins = b->oversubscribed ? 0 : SPINS;
    (void)sched_setaffinity(0, sizeof before, &before);
    MPI_Bcast(&least, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return least;
}

/* Reads half of the other rank's data, which is in that rank's cache, and adds it. */
static void take_half(struct bench *b, size_t count)
{
    size_t first = b->rank == 0 ? 0 : count / 2;
    float *mine = b->buffers[LIMIT] + first, *theirs = b->other + first;
    for (size_t i = 0; i < count / 2; i++) {
        mine[i] += theirs[i];
    }
}

static void call(struct bench *b, enum way way, size_t count)
{
    struct muster_err err = {.struct_size = sizeof err, .text = "failed"};
    float *data = b->buffers[way];
    int rc = 0;
    switch (way) {
    case PRIVATE:
        rc = muster_all_reduce(b->plain, data, data, count, MUSTER_F32, MUSTER_SUM, &err);
        break;
    case DIRECT:
        rc = muster_all_reduce(b->shared, data, data, count, MUSTER_F32, MUSTER_SUM, &err);
        break;
    case MPI:
        rc = MPI_Allreduce(MPI_IN_PLACE, data, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case LIMIT:
        if (count * sizeof(float) < TOUCH_FROM_BYTES) {
            exchange_flags(b);
        } else {
            take_half(b, count);
        }
        break;
    case GLOO:
#ifdef WITH_GLOO
        rc = gloo_all_reduce(data, count);
#endif
        break;
    case WAYS: break;
    }
    if (rc != 0) {
        bench_die(err.text);
    }
}

static bool has(const struct bench *b, enum way way)
{
    return way == GLOO ? b->gloo : way != LIMIT || b->size == 2;
}

static float touch(float *data, size_t count)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t i = 0; i < count; i++) {
        sum += data[i];
        data[i] = 0.5f;
    }
    return sum;
}

/* Returns the mean time of a call in a slice of `calls` calls. */
static double slice(struct bench *b, enum way way, size_t count, int calls, bool touched)
{
    static volatile float sink __attribute__((unused));
    double spent = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = now_us();
    for (int i = 0; i < calls; i++) {
        if (touched) {
            sink = touch(b->buffers[way], count);
            exchange_flags(b); /* so that the first touch is not part of the time */
            start = now_us();
        }
        call(b, way, count);
        if (touched) {
            spent += now_us() - start;
        }
    }
    return (touched ? spent : now_us() - start) / calls;
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static void check(struct bench *b, size_t count)
{
    for (int way = 0; way < WAYS; way++) {
        float *data = b->buffers[way];
        if (way == LIMIT || !has(b, (enum way)way)) {
            continue;
        }
        for (size_t i = 0; i < count; i++) {
            data[i] = (float)(i % 100) + (float)b->rank;
        }
        call(b, (enum way)way, count);
        for (size_t i = 0; i < count; i++) {
            float want = (float)(i % 100) * (float)b->size + (float)(b->size * (b->size - 1) / 2);
            if (data[i] != want) {
                bench_die("a wrong sum");
            }
        }
        memset(data, 0, count * sizeof *data);
    }
}

static void print(const struct bench *b, size_t bytes, bool touched, bool far, struct figures *f,
                  int dropped)
{
    (void)printf("{\"bytes\": %zu, \"touched\": %s, \"cores\": \"%s\", \"slices\": %d, "
                 "\"dropped\": %d",
                 bytes, touched ? "true" : "false", far ? "far" : "near", f->num, dropped);
    for (int way = 0; way < WAYS; way++) {
        if (has(b, (enum way)way)) {
            double *values = f->kept[way];
            qsort(values, (size_t)f->num, sizeof *values, by_value);
            (void)printf(", \"%s_us\": [%.4f, %.4f, %.4f]", way_names[way], values[f->num / 2],
                         values[f->num / 10], values[f->num - 1 - f->num / 10]);
        }
    }
    (void)printf("}\n");
    (void)fflush(stdout);
}

static void find_calls(struct bench *b, size_t bytes, bool touched, int *ret_calls)
{
    for (int way = 0; way < WAYS; way++) {
        if (has(b, (enum way)way)) {
            size_t count = bytes / sizeof(float);
            int first = way == GLOO || bytes > (1 << 20) ? 2 : 50;
            double once = slice(b, (enum way)way, count, first, touched);
            ret_calls[way] = once > slice_us ? 1 : (int)(slice_us / once) + 1;
            MPI_Bcast(&ret_calls[way], 1, MPI_INT, 0, MPI_COMM_WORLD);
        }
    }
}

static void measure(struct bench *b, size_t bytes, bool touched, double seconds)
{
    static struct figures figures[2];
    int calls[WAYS], dropped = 0;
    size_t count = bytes / sizeof(float);
    figures[0].num = figures[1].num = 0;
    check(b, count);
    find_calls(b, bytes, touched, calls);
    int more = 1;
    for (double end = now_us() + seconds * 1e6; more;) {
        double before = probe(b), times[WAYS] = {0};
        for (int way = 0; way < WAYS; way++) {
            if (has(b, (enum way)way)) {
                times[way] = slice(b, (enum way)way, count, calls[way], touched);
            }
        }
        int far = before >= NEAR_NS;
        struct figures *f = &figures[far];
        if (far == (probe(b) >= NEAR_NS) && f->num < MAX_SLICES) {
            for (int way = 0; way < WAYS; way++) {
                f->kept[way][f->num] = times[way];
            }
            f->num++;
        } else {
            dropped++;
        }
        more = now_us() < end;
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    for (int far = 0; far < 2 && b->rank == 0; far++) {
        if (figures[far].num > 0) {
            print(b, bytes, touched, far, &figures[far], dropped);
        }
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    static struct bench b;
    MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &b.size);
    size_t from = argc > 1 ? strtoull(argv[1], NULL, 10) : 8;
    size_t to = argc > 2 ? strtoull(argv[2], NULL, 10) : 64 << 20;
    double seconds = argc > 3 ? strtod(argv[3], NULL) : 0.5;
    bench_open(&b, to < 64 ? 64 : to);
    for (size_t bytes = from; bytes <= to; bytes *= bytes == 8 ? 64 : bytes == 512 ? 8 : 4) {
        bool touched = bytes >= TOUCH_FROM_BYTES && !b.oversubscribed;
        measure(&b, bytes, touched, seconds);
        if (touched) {
            measure(&b, bytes, false, seconds / 2);
        }
    }
    bench_close(&b);
    MPI_Finalize();
    return 0;
}
