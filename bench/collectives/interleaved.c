/* libmuster and MPI side by side in the same processes. Virtual cores migrate, so that an absolute
 * figure is worth little: short slices of each alternate, a ping-pong probe before and after each
 * pair tells where the cores are (near: one cache; far: two), and only pairs between equal probes
 * count.
 *
 * Usage: mpirun -np 2 interleaved FROM_BYTES TO_BYTES SECONDS_PER_SIZE     prints one JSON object
 * per line. From 16 KiB up every rank rewrites its buffer before each call and reads it after,
 * outside the time.
 */
#include <muster/muster.h>

#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MAX_SLICES = 2000, PROBES = 100, NEAR_NS = 150, TOUCH_FROM_BYTES = 16 * 1024, WAYS = 3 };

static const char *const way_names[WAYS] = {"private", "direct", "mpi"};
static const double slice_us = 1500;

struct bench {
    int rank;
    int size;
    struct muster_comm *plain;  /* no memory was allocated: the private way */
    struct muster_comm *shared; /* with muster_comm_alloc */
    float *private;
    float *direct;
    _Atomic int *probe; /* a word for each of ranks 0 and 1, on lines of their own */
};

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void die(const char *what)
{
    (void)fprintf(stderr, "interleaved: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Round trip between ranks 0 and 1, in ns: the least of a few. */
static double probe(struct bench *b)
{
    double least = 1e9;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int turn = 0; turn < 3; turn++) {
        int base = atomic_load(&b->probe[b->rank == 1 ? 32 : 0]);
        double start = now_us();
        for (int i = 1; i <= PROBES && b->rank < 2; i++) {
            _Atomic int *mine = &b->probe[b->rank ? 32 : 0], *other = &b->probe[b->rank ? 0 : 32];
            if (b->rank == 0) {
                atomic_store_explicit(mine, base + i, memory_order_release);
            }
            for (int spins = 0; atomic_load_explicit(other, memory_order_acquire) != base + i;
                 spins++) {
                if (spins > 20000) {
                    sched_yield(); /* more ranks than cores */
                }
            }
            if (b->rank == 1) {
                atomic_store_explicit(mine, base + i, memory_order_release);
            }
        }
        double ns = (now_us() - start) * 1e3 / PROBES;
        least = ns < least ? ns : least;
    }
    MPI_Bcast(&least, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return least;
}

static void call(struct bench *b, int way, size_t count)
{
    struct muster_err err;
    float *data = way == 1 ? b->direct : b->private;
    struct muster_comm *comm = way == 1 ? b->shared : b->plain;
    int rc = way == 2
                 ? MPI_Allreduce(MPI_IN_PLACE, data, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD)
                 : muster_all_reduce(comm, data, data, count, MUSTER_F32, MUSTER_SUM, &err);
    if (rc != 0) {
        die(way == 2 ? "MPI failed" : err.text);
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

/* Mean time of a call in a slice of so many calls. */
static double slice(struct bench *b, int way, size_t count, int calls)
{
    static volatile float sink;
    bool touched = count * sizeof(float) >= TOUCH_FROM_BYTES;
    float *data = way == 1 ? b->direct : b->private;
    double spent = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = now_us();
    for (int i = 0; i < calls; i++) {
        if (touched) {
            sink = touch(data, count);
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

static double median(double *values, int num)
{
    qsort(values, (size_t)num, sizeof *values, by_value);
    return num > 0 ? values[num / 2] : 0;
}

static void check(struct bench *b, size_t count)
{
    for (int way = 0; way < WAYS; way++) {
        float *data = way == 1 ? b->direct : b->private;
        for (size_t i = 0; i < count; i++) {
            data[i] = (float)(i % 100) + (float)b->rank;
        }
        call(b, way, count);
        for (size_t i = 0; i < count; i++) {
            float want = (float)(i % 100) * (float)b->size + (float)(b->size * (b->size - 1) / 2);
            if (data[i] != want) {
                die("a wrong sum");
            }
        }
        memset(data, 0, count * sizeof *data);
    }
}

static void measure(struct bench *b, size_t bytes, double seconds)
{
    static double kept[2][WAYS][MAX_SLICES];
    int num[2] = {0, 0}, calls[WAYS], dropped = 0;
    size_t count = bytes / sizeof(float);
    check(b, count);
    for (int way = 0; way < WAYS; way++) {
        double once = slice(b, way, count, bytes > (1 << 20) ? 2 : 50);
        calls[way] = once > slice_us ? 1 : (int)(slice_us / once) + 1;
        MPI_Bcast(&calls[way], 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    int more = 1;
    for (double end = now_us() + seconds * 1e6; more;) {
        double before = probe(b), times[WAYS];
        for (int way = 0; way < WAYS; way++) {
            times[way] = slice(b, way, count, calls[way]);
        }
        double after = probe(b);
        int far = before >= NEAR_NS;
        if (far == (after >= NEAR_NS) && num[far] < MAX_SLICES) {
            for (int way = 0; way < WAYS; way++) {
                kept[far][way][num[far]] = times[way];
            }
            num[far]++;
        } else {
            dropped++;
        }
        more = now_us() < end;
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    for (int far = 0; far < 2 && b->rank == 0; far++) {
        if (num[far] > 0) {
            (void)printf("{\"bytes\": %zu, \"cores\": \"%s\", \"slices\": %d, \"dropped\": %d",
                         bytes, far ? "far" : "near", num[far], dropped);
            for (int way = 0; way < WAYS; way++) {
                (void)printf(", \"%s_us\": %.4f", way_names[way], median(kept[far][way], num[far]));
            }
            (void)printf("}\n");
            (void)fflush(stdout);
        }
    }
}

static void set_up(struct bench *b, size_t most)
{
    struct muster_err err = {0};
    struct muster_comm *world;
    void *memory;
    char path[] = "/dev/shm/muster-bench-XXXXXX";
    if (muster_comm_from_env(&world, &err) < 0 ||
        muster_comm_split(world, 0, 0, &b->plain, &err) < 0 ||
        muster_comm_split(world, 0, 0, &b->shared, &err) < 0 ||
        muster_comm_alloc(b->shared, most, &memory, &err) < 0) {
        die(err.text);
    }
    b->direct = memory;
    b->private = calloc(1, most);
    int fd = b->rank == 0 ? mkstemp(path) : -1;
    if (fd >= 0 && ftruncate(fd, 4096) < 0) {
        die("no shared memory");
    }
    MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
    fd = fd < 0 ? open(path, O_RDWR) : fd;
    b->probe = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (b->rank == 0) {
        (void)unlink(path);
    }
    (void)close(fd);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    struct bench b = {0};
    MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &b.size);
    size_t from = argc > 1 ? strtoull(argv[1], NULL, 10) : 8;
    size_t to = argc > 2 ? strtoull(argv[2], NULL, 10) : 64 << 20;
    double seconds = argc > 3 ? strtod(argv[3], NULL) : 0.5;
    set_up(&b, to < 64 ? 64 : to);
    for (size_t bytes = from; bytes <= to; bytes *= bytes == 8 ? 64 : bytes == 512 ? 8 : 4) {
        measure(&b, bytes, seconds);
    }
    muster_comm_free(b.plain);
    muster_comm_free(b.shared);
    free(b.private);
    MPI_Finalize();
    return 0;
}
