/* MPI as a runner. */
#include "operations.h"

#include <mpi.h>

static void there_and_back(const struct arguments *a)
{
    int count = (int)a->count;
    if (a->rank < a->neighbour) {
        MPI_Send(a->in, count, MPI_FLOAT, a->neighbour, 0, MPI_COMM_WORLD);
    }
    MPI_Recv(a->out, count, MPI_FLOAT, a->neighbour, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (a->rank > a->neighbour) {
        MPI_Send(a->in, count, MPI_FLOAT, a->neighbour, 0, MPI_COMM_WORLD);
    }
}

static void window(const struct arguments *a)
{
    MPI_Request requests[2 * MAX_WINDOW];
    for (int i = 0; i < a->window; i++) {
        MPI_Irecv(a->out + (size_t)i * a->count, (int)a->count, MPI_FLOAT, a->neighbour, 0,
                  MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = 0; i < a->window; i++) {
        MPI_Isend(a->in + (size_t)i * a->count, (int)a->count, MPI_FLOAT, a->neighbour, 0,
                  MPI_COMM_WORLD, &requests[a->window + i]);
    }
    MPI_Waitall(2 * a->window, requests, MPI_STATUSES_IGNORE);
}

static void all_reduce_started(const struct arguments *a)
{
    MPI_Request request;
    MPI_Iallreduce(a->in, a->out, (int)a->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void run(void *state, const struct arguments *a)
{
    (void)state;
    int n = (int)a->count;
    MPI_Comm world = MPI_COMM_WORLD;
    switch (a->operation) {
    case ALL_REDUCE: MPI_Allreduce(a->in, a->out, n, MPI_FLOAT, MPI_SUM, world); break;
    case ALL_REDUCE_STARTED: all_reduce_started(a); break;
    case REDUCE: MPI_Reduce(a->in, a->out, n, MPI_FLOAT, MPI_SUM, 0, world); break;
    case REDUCE_SCATTER:
        MPI_Reduce_scatter_block(a->in, a->out, n, MPI_FLOAT, MPI_SUM, world);
        break;
    case ALL_GATHER: MPI_Allgather(a->in, n, MPI_FLOAT, a->out, n, MPI_FLOAT, world); break;
    case BROADCAST: MPI_Bcast(a->out, n, MPI_FLOAT, 0, world); break;
    case GATHER: MPI_Gather(a->in, n, MPI_FLOAT, a->out, n, MPI_FLOAT, 0, world); break;
    case SCATTER: MPI_Scatter(a->in, n, MPI_FLOAT, a->out, n, MPI_FLOAT, 0, world); break;
    case ALL_TO_ALL: MPI_Alltoall(a->in, n, MPI_FLOAT, a->out, n, MPI_FLOAT, world); break;
    case BARRIER: MPI_Barrier(world); break;
    case THERE_AND_BACK: there_and_back(a); break;
    case WINDOW: window(a); break;
    case OPERATIONS: break;
    }
}

static void close_nothing(void *state)
{
    (void)state;
}

struct runner mpi_runner(void)
{
    return (struct runner){"mpi", NULL, run, close_nothing};
}
