/* Whether a rank has stalled: samples in, one verdict for each stall out.
 *
 *     SILENT   no output, and next to no processor time of all its processes, for `limit_ms`; a
 *              process that waits for a processor is not idle: the machine is overloaded
 *     IN_CALL  inside the same collective of backend muster for `limit_ms`, whatever else it does
 *
 * Layer: services; pure. Time comes in as data, monotonic. Ownership: the caller's struct.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct stall_sample {
    int64_t now_ms;
    uint64_t output_bytes; /* of the attempt since it started */
    uint64_t cpu_ms;       /* of its processes; decreases when one of them has ended */
    uint64_t call;         /* the call that it is inside; 0: none */
    bool runnable;         /* one of its processes runs, or waits for a processor */
};

struct stall {
    int64_t limit_ms;           /* 0: a stall is never reported */
    struct stall_sample quiet;  /* the sample since which it has been silent and idle */
    struct stall_sample inside; /* the first sample inside this call */
    bool begun;
    bool told;
};

enum stall_verdict { STALL_NONE, STALL_SILENT, STALL_IN_CALL };

/* Idle processes read clocks, send heartbeats and poll: this does not count as work. */
enum { STALL_IDLE_PERCENT = 2, STALL_IDLE_MS = 50 };

void stall_init(struct stall *stall, int64_t limit_ms);
/* Returns a verdict other than STALL_NONE once in each stall, as soon as the stall is long
 * enough. */
enum stall_verdict stall_step(struct stall *stall, const struct stall_sample *sample);
/* Whether it stalls, and a verdict was returned for this stall. */
bool stall_is_told(const struct stall *stall);
