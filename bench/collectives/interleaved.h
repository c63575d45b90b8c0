/* What the ranks of interleaved.c share, and the libraries that they compare. */
#pragma once

#include <muster/muster.h>

#include <stdatomic.h>
#include <stdbool.h>

#ifdef WITH_GLOO
int gloo_start(int rank, int size, const char *folder);
int gloo_all_reduce(float *data, size_t count);
void gloo_stop(void);
#endif

enum {
    LINE = 64,
    SPINS = 20000, /* then yields: there may be more ranks than cores */
};

enum way { PRIVATE, DIRECT, MPI, LIMIT, GLOO, WAYS };

struct flag {
    _Alignas(2 * LINE) _Atomic unsigned value;
};

struct bench {
    int rank;
    int size;
    bool oversubscribed;
    int spins;
    bool gloo;
    struct muster_comm *plain;  /* for memory that was not allocated by muster: the private way */
    struct muster_comm *shared; /* with muster_comm_alloc */
    float *buffers[WAYS];
    float *other;       /* the other rank's buffer, for the limit */
    struct flag *flags; /* one for each rank, in shared memory */
    unsigned turn;
};

void bench_die(const char *what);

/* Starts the libraries, with buffers of most_bytes; b has its rank and size. */
void bench_open(struct bench *b, size_t most_bytes);
void bench_close(struct bench *b);
