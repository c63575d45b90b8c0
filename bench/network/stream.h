/* What the network itself carries between two ranks: as many bytes each way at the same time, over
 * a TCP connection of their own, with no sum and no rounds. Beside it one sees what an all-reduce
 * adds, and what the network loses: a virtual wire is not always free when there is something to
 * send.
 */
#pragma once

#include <stddef.h>

/* Connects rank 1 with rank 0, which listens at this address; MPI transmits the port. Returns a
 * socket, or -1. */
int stream_open(int rank, const char *address);

/* Sends and receives `bytes` bytes of a buffer each. Returns -1 when the connection failed. */
int stream_swap(int fd, const char *out, char *in, size_t bytes);
