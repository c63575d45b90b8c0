/* Every operation by libmuster and by MPI, and by a second build of libmuster if one is given, by
 * turns in the same processes: virtual cores migrate and other programs run, so that only what was
 * measured within the same milliseconds can be compared.
 *
 * Usage: mpirun -np N operations SECONDS FROM_BYTES TO_BYTES NAME,… WRITES LIBMUSTER PORT
 * [OTHER_LIBMUSTER PORT]. WRITES 1: every rank writes its data before each call, as programs do,
 * and that time counts, for all runners alike. 0: the data is never written again, so that whoever
 * has copied it once has it in its own cache. Prints one JSON object for each operation and size:
 * of each runner the median over slices of the mean time of a call, and its 10th and 90th
 * percentile, in microseconds; and of each but the first the median of its time divided by the
 * first's in the same turn, and the ratio of the 10th percentiles, which says more where other
 * programs take the processors away. NAME,…: operations, or "all". Bytes are those of the whole
 * operation: all ranks' blocks where there are blocks.
 */
#include "operations.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MAX_TURNS = 4000,
    MAX_RUNNERS = 3,
    LINE_BYTES = 64,
    LARGE_BYTES = 1 << 20,
    LARGE_WINDOW = 4,
    MOST_CALLS = 5000
};

static const double slice_us = 1200;
static const char *const names[OPERATIONS] = {
    "all_reduce",     "all_reduce_started",
    "reduce",         "reduce_scatter",
    "all_gather",     "broadcast",
    "gather",         "scatter",
    "all_to_all",     "barrier",
    "there_and_back", "window",
};

struct bench {
    int rank;
    int size;
    struct runner runners[MAX_RUNNERS];
    int num;
    struct arguments arguments;
    size_t buffer_bytes; /* the size of in and of out */
    int calls[MAX_RUNNERS];
    double times[MAX_RUNNERS][MAX_TURNS];
    int turns;
    bool writes; /* whether it writes its data before each call */
};

void die(const char *what)
{
    (void)fprintf(stderr, "operations: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* Returns the bytes of the data that this rank passes to a call. */
static size_t given_bytes(const struct bench *b)
{
    enum operation o = b->arguments.operation;
    bool block = o == ALL_GATHER || o == GATHER,
         none = b->rank != 0 && (o == BROADCAST || o == SCATTER);
    return none ? 0 : block ? b->buffer_bytes / (size_t)b->size : b->buffer_bytes;
}

/* Writes one word in each cache line of the data. */
static void write_data(const struct bench *b)
{
    const struct arguments *a = &b->arguments;
    volatile float *data = a->operation == BROADCAST ? a->out : a->in;
    for (size_t i = 0; i < given_bytes(b) / sizeof *data; i += LINE_BYTES / sizeof *data) {
        data[i] += 1;
    }
}

/* Returns the mean time of a call in a slice of `calls` calls, on the rank for which it took
 * longest. */
static double slice(struct bench *b, const struct runner *runner, int calls)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start = now_us();
    for (int i = 0; i < calls; i++) {
        if (b->writes) {
            write_data(b);
        }
        runner->run(runner->state, &b->arguments);
    }
    double mine = (now_us() - start) / calls, longest;
    MPI_Allreduce(&mine, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return longest;
}

static bool has_blocks(enum operation o)
{
    return o == ALL_GATHER || o == REDUCE_SCATTER || o == ALL_TO_ALL || o == GATHER || o == SCATTER;
}

static void fill(struct bench *b)
{
    size_t count = b->buffer_bytes / sizeof(float);
    for (size_t i = 0; i < count; i++) {
        b->arguments.in[i] = (float)((i * 7 + (size_t)b->rank * 13) % 101);
    }
    memset(b->arguments.out, 0, b->buffer_bytes);
    if (b->arguments.operation == BROADCAST && b->rank == 0) {
        memcpy(b->arguments.out, b->arguments.in, b->buffer_bytes);
    }
}

/* Checks that all runners leave the same bytes; the data is such that sums are exact. */
static void check(struct bench *b)
{
    float *first = malloc(b->buffer_bytes);
    for (int r = 0; r < b->num; r++) {
        fill(b);
        b->runners[r].run(b->runners[r].state, &b->arguments);
        if (r == 0) {
            memcpy(first, b->arguments.out, b->buffer_bytes);
        } else if (memcmp(first, b->arguments.out, b->buffer_bytes) != 0) {
            (void)fprintf(stderr, "%s, %zu elements: ", names[b->arguments.operation],
                          b->arguments.count);
            die("the runners differ");
        }
    }
    free(first);
}

static void find_calls(struct bench *b)
{
    for (int r = 0; r < b->num; r++) {
        double once = slice(b, &b->runners[r], b->buffer_bytes >= LARGE_BYTES ? 1 : 20);
        double calls = slice_us / once + 1;
        b->calls[r] = calls > MOST_CALLS ? MOST_CALLS : (int)calls;
    }
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static double median_ratio(const struct bench *b, int runner)
{
    static double ratios[MAX_TURNS];
    for (int t = 0; t < b->turns; t++) {
        ratios[t] = b->times[runner][t] / b->times[0][t];
    }
    qsort(ratios, (size_t)b->turns, sizeof *ratios, by_value);
    return ratios[b->turns / 2];
}

static void print(struct bench *b, size_t bytes)
{
    (void)printf("{\"operation\": \"%s\", \"bytes\": %zu, \"turns\": %d",
                 names[b->arguments.operation], bytes, b->turns);
    for (int r = 1; r < b->num; r++) {
        (void)printf(", \"%s_ratio\": %.4f", b->runners[r].name, median_ratio(b, r));
    }
    int tenth = b->turns / 10;
    for (int r = 0; r < b->num; r++) {
        double *t = b->times[r];
        qsort(t, (size_t)b->turns, sizeof *t, by_value);
        (void)printf(", \"%s_us\": [%.4f, %.4f, %.4f]", b->runners[r].name, t[b->turns / 2],
                     t[tenth], t[b->turns - 1 - tenth]);
    }
    for (int r = 1; r < b->num; r++) {
        (void)printf(", \"%s_low_ratio\": %.4f", b->runners[r].name,
                     b->times[r][tenth] / b->times[0][tenth]);
    }
    (void)printf("}\n");
    (void)fflush(stdout);
}

static void measure(struct bench *b, enum operation operation, size_t bytes, double seconds)
{
    struct arguments *a = &b->arguments;
    a->operation = operation;
    a->window = bytes >= LARGE_BYTES ? LARGE_WINDOW : MAX_WINDOW;
    a->count = bytes / sizeof(float) / (has_blocks(operation) ? (size_t)b->size : 1);
    b->buffer_bytes = operation == WINDOW ? bytes * (size_t)a->window : bytes;
    check(b);
    find_calls(b);
    b->turns = 0;
    int more = 1;
    for (double end = now_us() + seconds * 1e6; more;) {
        for (int k = 0; k < b->num; k++) {
            int r = (b->turns + k) % b->num;
            b->times[r][b->turns] = slice(b, &b->runners[r], b->calls[r]);
        }
        b->turns++;
        more = now_us() < end && b->turns < MAX_TURNS;
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (b->rank == 0) {
        print(b, bytes);
    }
}

static bool is_named(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at += length) {
        bool starts = at == list || at[-1] == ',', ends = !at[length] || at[length] == ',';
        if (starts && ends) {
            return true;
        }
    }
    return strcmp(list, "all") == 0;
}

static void set_up(struct bench *b, size_t most, int num, char **libraries)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &b->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &b->size);
    b->arguments.rank = b->rank;
    b->arguments.neighbour = b->rank ^ 1;
    size_t bytes = most < LARGE_BYTES ? (size_t)MAX_WINDOW * LARGE_BYTES : LARGE_WINDOW * most;
    bytes = bytes < (size_t)MAX_WINDOW * LARGE_BYTES ? (size_t)MAX_WINDOW * LARGE_BYTES : bytes;
    b->arguments.in = calloc(1, bytes);
    b->arguments.out = calloc(1, bytes);
    if (!b->arguments.in || !b->arguments.out) {
        die("no memory for buffers");
    }
    b->runners[b->num++] = muster_runner(libraries[0], "muster", libraries[1], b->rank, b->size);
    b->runners[b->num++] = mpi_runner();
    if (num > 2) {
        b->runners[b->num++] = muster_runner(libraries[2], "other", libraries[3], b->rank, b->size);
    }
}

int main(int argc, char **argv)
{
    static struct bench b;
    MPI_Init(&argc, &argv);
    if (argc != 8 && argc != 10) {
        die("usage: operations SECONDS FROM_BYTES TO_BYTES NAME,… WRITES LIBMUSTER PORT [OTHER_LIBMUSTER PORT]");
    }
    double seconds = strtod(argv[1], NULL);
    b.writes = strcmp(argv[5], "1") == 0;
    size_t from = strtoull(argv[2], NULL, 10), to = strtoull(argv[3], NULL, 10);
    set_up(&b, to, argc - 6, argv + 6);
    for (int o = 0; o < OPERATIONS; o++) {
        bool even = b.size % 2 == 0 || (o != THERE_AND_BACK && o != WINDOW);
        for (size_t bytes = from; bytes <= to && even && is_named(argv[4], names[o]); bytes *= 4) {
            measure(&b, (enum operation)o, o == BARRIER ? 0 : bytes, seconds);
            bytes = o == BARRIER ? to : bytes;
        }
    }
    for (int r = 0; r < b.num; r++) {
        b.runners[r].close(b.runners[r].state);
    }
    MPI_Finalize();
    return 0;
}
