/* `muster perf COLLECTIVE`: how fast collectives are here, each result checked.
 *
 * Layer: program. Memory: each rank's own. Thread: one per rank; the ranks are processes of its
 * own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <muster/comm.h>

int perf_main(int argc, char **argv);

enum { PERF_MAX_SIZES = 64, PERF_MAX_RANKS = 64 };

struct perf_options {
    enum muster_collective kind;
    enum muster_type type;
    enum muster_op op;
    int ranks;
    size_t least_bytes;
    size_t most_bytes;
    double seconds; /* for each size */
    bool direct;    /* the buffers are memory of muster_comm_alloc */
    bool touch;     /* rewrite the buffer before each call and read it after */
    bool pin;       /* rank r on processor r */
    bool json;
    const char *transport;
};

struct perf_result {
    size_t bytes;
    size_t calls;
    double p50_us;
    double p99_us;
    double least_us;
    double most_us;
    size_t wrong; /* wrong elements, on all ranks */
};

/* Fills in the first `elements` elements of this rank's input. */
void perf_fill(const struct perf_options *options, int rank, size_t elements, void *in);
/* Returns how many elements of the output are wrong after a call of `count` elements with root 0.
 */
size_t perf_count_wrong(const struct perf_options *options, int rank, size_t count,
                        const void *out);

/* Runs all sizes on one rank; rank 0's results count. Returns the number of results, or a negative
 * code. */
int perf_measure(struct muster_comm *comm, const struct perf_options *options,
                 struct perf_result *ret, struct muster_err *err);

/* Starts the ranks as processes; the results are those of rank 0. */
int perf_run_ranks(const struct perf_options *options, struct perf_result *ret,
                   char *ret_description, size_t description_bytes, struct muster_err *err);

void perf_print(const struct perf_options *options, const struct perf_result *results, int num,
                const char *description);
/* Prints from which size on each algorithm is used, and the table of tunings. Returns 0 or
 * MUSTER_ECONFIG. */
int perf_print_tuning(int ranks, struct muster_err *err);
