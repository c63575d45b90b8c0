/* The operations that are compared, and who can run them: libmuster (any build of it) and MPI. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum operation {
    ALL_REDUCE,
    ALL_REDUCE_STARTED, /* started, then waited for */
    REDUCE,
    REDUCE_SCATTER,
    ALL_GATHER,
    BROADCAST,
    GATHER,
    SCATTER,
    ALL_TO_ALL,
    BARRIER,
    THERE_AND_BACK, /* a send and a receive with the neighbour, which receives, then sends */
    WINDOW,         /* messages to and from the neighbour, all started, then all waited for */
    OPERATIONS,
};

enum { MAX_WINDOW = 16 };

/* The arguments of one call, the same for all runners. Reductions are sums of f32, roots are rank
 * 0, and neighbours are ranks 0 and 1, 2 and 3, … */
struct arguments {
    enum operation operation;
    float *in;
    float *out;
    size_t count; /* elements of a block if there is one block for each rank, else of all */
    int window;   /* number of messages */
    int rank;
    int neighbour;
};

struct runner {
    const char *name;
    void *state;
    void (*run)(void *state, const struct arguments *arguments);
    void (*close)(void *state);
};

/* Loads that libmuster.so and forms a communicator with it, through a port that no other build
 * uses; the memory of muster_comm_alloc is not used. */
struct runner muster_runner(const char *path, const char *name, const char *port, int rank,
                            int size);
struct runner mpi_runner(void);

/* Ends all ranks. */
void die(const char *what);
