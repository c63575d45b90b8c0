/* The libraries that interleaved.c compares: started, each with its buffers, and ended. */
#include "interleaved.h"

#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };

void bench_die(const char *what)
{
    (void)fprintf(stderr, "interleaved: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Makes memory that all ranks share, for measurements besides those of the libraries. */
static void share(struct bench *b, size_t most)
{
    char path[] = "/dev/shm/muster-bench-XXXXXX";
    size_t part = (most + PAGE) / PAGE * PAGE, bytes = PAGE + 2 * part;
    int fd = b->rank == 0 ? mkstemp(path) : -1;
    if (fd >= 0 && ftruncate(fd, (off_t)bytes) < 0) {
        bench_die("no shared memory");
    }
    MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
    fd = fd < 0 ? open(path, O_RDWR) : fd;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED || (size_t)b->size > PAGE / sizeof(struct flag)) {
        bench_die("no shared memory");
    }
    b->flags = (struct flag *)(void *)memory;
    b->buffers[LIMIT] = (float *)(void *)(memory + PAGE + (b->rank == 1 ? part : 0));
    b->other = (float *)(void *)(memory + PAGE + (b->rank == 1 ? 0 : part));
    memset(b->buffers[LIMIT], 0, part);
    MPI_Barrier(MPI_COMM_WORLD);
    if (b->rank == 0) {
        (void)unlink(path);
    }
    (void)close(fd);
}

static void start_gloo(struct bench *b)
{
#ifdef WITH_GLOO
    char folder[] = "/tmp/muster-bench-XXXXXX";
    if (b->rank == 0 && !mkdtemp(folder)) {
        bench_die("no folder for gloo");
    }
    MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    b->gloo = gloo_start(b->rank, b->size, folder) == 0;
    if (!b->gloo) {
        bench_die("gloo failed to start");
    }
#else
    b->gloo = false;
#endif
}

void bench_open(struct bench *b, size_t most_bytes)
{
    struct muster_err err = MUSTER_ERR_INIT;
    struct muster_comm *world;
    void *memory;
    if (muster_comm_from_env(&world, &err) < 0 ||
        muster_comm_split(world, 0, 0, &b->plain, &err) < 0 ||
        muster_comm_split(world, 0, 0, &b->shared, &err) < 0 ||
        muster_comm_alloc(b->shared, most_bytes, &memory, &err) < 0) {
        bench_die(err.text);
    }
    b->oversubscribed = b->size > sysconf(_SC_NPROCESSORS_ONLN);
    b->spins = b->oversubscribed ? 0 : SPINS;
    share(b, most_bytes);
    start_gloo(b);
    b->buffers[DIRECT] = memory;
    b->buffers[PRIVATE] = b->buffers[MPI] = b->buffers[GLOO] = calloc(1, most_bytes);
}

void bench_close(struct bench *b)
{
    muster_comm_free(b->plain);
    muster_comm_free(b->shared);
#ifdef WITH_GLOO
    gloo_stop();
#endif
}
