/* Checks every few seconds whether a job's attempts have stalled (process/stack/stall.h), and
 * reports once for each that has where it is: {"event":"stalled","id":…,"text":"rank 1 has …"}.
 *
 * A check is one pass over /proc, and the descriptors of the job's own processes. Only attempts
 * that have stalled are asked for their stacks, once; no other process gets a signal.
 *
 * Layer: services; private to the supervisor. Thread: the loop's. Ownership: start/stop.
 */
#pragma once

#include "process/supervisor/inspect.h"

struct stalls {
    const struct inspect *inspect;
    uv_timer_t timer;
    struct stacks *taking;
    struct stalls_verdict *verdicts; /* of the look whose stacks are being taken */
    size_t verdict_count;
};

void stalls_start(struct stalls *stalls, const struct inspect *inspect);
/* To be called when the attempts have changed. */
void stalls_update(struct stalls *stalls);
void stalls_stop(struct stalls *stalls);
