/* libmuster and Open MPI side by side in the same processes, over TCP between network namespaces:
 * short slices of each alternate, so that whatever else the machine does falls on all of them. From
 * 16 KiB up every rank rewrites its buffer before each call and reads it after, outside the time.
 *
 * Usage: mpirun … ranks SECONDS_PER_SIZE CONGESTION BYTES…     prints one JSON object per size.
 * CONGESTION names the congestion control of the way "chosen" (see MUSTER_TCP_CONGESTION); the way
 * "system" leaves it alone. With several ranks on a host there is a way "flat", in which they, too,
 * talk over TCP. Of two ranks there is a way "stream": as many bytes each way, unsummed (stream.h).
 */
#include "stream.h"

#include <muster/muster.h>

#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_SLICES = 4000, TOUCH_FROM_BYTES = 16 * 1024, MIN_SLICES = 3 };
enum way { SYSTEM, CHOSEN, FLAT, MPI, STREAM, WAYS };

static const char *const way_names[WAYS] = {"system", "chosen", "flat", "mpi", "stream"};
static const double slice_us = 4000;

struct bench {
    int rank;
    int size;
    struct muster_comm *comms[WAYS]; /* NULL if not measured, and always for MPI and STREAM */
    int stream;                      /* -1: not measured */
    float *data;
    char *received; /* received by the stream */
};

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void die(const char *what)
{
    (void)fprintf(stderr, "ranks: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static bool is_measured(const struct bench *b, int way)
{
    return way == MPI || (way == STREAM && b->stream >= 0) || b->comms[way];
}

static void call(struct bench *b, int way, size_t count)
{
    struct muster_err err = MUSTER_ERR_INIT;
    if (way == STREAM) {
        if (stream_swap(b->stream, (char *)b->data, b->received, count * sizeof *b->data) < 0) {
            die("the stream broke");
        }
        return;
    }
    int rc = way == MPI ? MPI_Allreduce(MPI_IN_PLACE, b->data, (int)count, MPI_FLOAT, MPI_SUM,
                                        MPI_COMM_WORLD)
                        : muster_all_reduce(b->comms[way], b->data, b->data, count, MUSTER_F32,
                                            MUSTER_SUM, &err);
    if (rc != 0) {
        die(way == MPI ? "MPI failed" : err.text);
    }
}

static float touch(float *data, size_t count)
{
    float sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += data[i];
        data[i] = 0.5f;
    }
    return sum;
}

/* Returns the mean time of a call in a slice of `calls` calls. */
static double slice(struct bench *b, int way, size_t count, int calls)
{
    static volatile float sink;
    bool touched = count * sizeof(float) >= TOUCH_FROM_BYTES;
    double spent = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = now_us();
    for (int i = 0; i < calls; i++) {
        if (touched) {
            sink = touch(b->data, count);
            start = now_us();
        }
        call(b, way, count);
        if (touched) {
            spent += now_us() - start;
        }
    }
    return (touched ? spent : now_us() - start) / calls;
}

static void check(struct bench *b, int way, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        b->data[i] = (float)(i % 100) + (float)b->rank;
    }
    call(b, way, count);
    for (size_t i = 0; i < count && way != STREAM; i++) {
        float want = (float)(i % 100) * (float)b->size + (float)(b->size * (b->size - 1) / 2);
        if (b->data[i] != want) {
            die("a wrong sum");
        }
    }
    memset(b->data, 0, count * sizeof *b->data);
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static void print(size_t bytes, int way, double *times, int num)
{
    qsort(times, (size_t)num, sizeof *times, by_value);
    (void)printf("{\"bytes\": %zu, \"way\": \"%s\", \"slices\": %d, \"us\": %.3f, "
                 "\"p10_us\": %.3f, \"p90_us\": %.3f}\n",
                 bytes, way_names[way], num, times[num / 2], times[num / 10], times[num * 9 / 10]);
    (void)fflush(stdout);
}

static void measure(struct bench *b, size_t bytes, double seconds)
{
    static double times[WAYS][MAX_SLICES];
    int calls[WAYS] = {0}, num = 0, more = 1;
    size_t count = bytes / sizeof(float);
    for (int way = 0; way < WAYS; way++) {
        if (is_measured(b, way)) {
            check(b, way, count);
            double once = slice(b, way, count, bytes < 65536 ? 20 : 1);
            calls[way] = once > slice_us ? 1 : (int)(slice_us / once) + 1;
        }
    }
    MPI_Bcast(calls, WAYS, MPI_INT, 0, MPI_COMM_WORLD);
    for (double end = now_us() + seconds * 1e6; more; num++) {
        for (int way = 0; way < WAYS; way++) {
            times[way][num] = calls[way] > 0 ? slice(b, way, count, calls[way]) : 0;
        }
        more = num + 1 < MAX_SLICES && (now_us() < end || num + 1 < MIN_SLICES);
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    for (int way = 0; way < WAYS && b->rank == 0; way++) {
        if (is_measured(b, way)) {
            print(bytes, way, times[way], num);
        }
    }
}

static void set_up(struct bench *b, const char *congestion, size_t most)
{
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_comm *world;
    (void)setenv("MUSTER_TCP_CONGESTION", "system", 1);
    if (muster_comm_from_env(&world, &err) < 0) {
        die(err.text);
    }
    b->comms[SYSTEM] = world;
    (void)setenv("MUSTER_TCP_CONGESTION", congestion, 1);
    if (muster_comm_split(world, 0, 0, &b->comms[CHOSEN], &err) < 0) {
        die(err.text);
    }
    int alone = strstr(muster_comm_describe(world), "shared memory") == NULL;
    (void)setenv("MUSTER_TRANSPORT", "tcp", 1);
    if (!alone && muster_comm_split(world, 0, 0, &b->comms[FLAT], &err) < 0) {
        die(err.text);
    }
    b->stream = b->size == 2 ? stream_open(b->rank, getenv("MASTER_ADDR")) : -1;
    b->data = calloc(1, most);
    b->received = calloc(1, most);
    if (!b->data || !b->received || (b->size == 2 && b->stream < 0)) {
        die("no memory, or no connection");
    }
}

int main(int argc, char **argv)
{
    struct bench b = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &b.size);
    if (argc < 4) {
        die("usage: ranks SECONDS_PER_SIZE CONGESTION BYTES…, ascending");
    }
    set_up(&b, argv[2], strtoull(argv[argc - 1], NULL, 10));
    for (int i = 3; i < argc; i++) {
        measure(&b, strtoull(argv[i], NULL, 10), strtod(argv[1], NULL));
    }
    for (int way = 0; way < WAYS; way++) {
        muster_comm_free(b.comms[way]);
    }
    if (b.stream >= 0) {
        close(b.stream);
    }
    free(b.received);
    free(b.data);
    MPI_Finalize();
    return 0;
}
