/* What the processes of a job are in: their state, their processor time over a moment, and the
 * Python stacks of each. Attempts are asked beside each other, the processes of one after the other
 * (those that were forked share a file); all is over after a bounded time, with what came.
 *
 * The report is a JSON array, one object for each attempt in the order asked:
 *
 *     {"id": "POD/CONTAINER/ATTEMPT", "rank": 0, "processes": [
 *        {"pid", "parent", "state": "sleeping", "cpuPercent": 0.0, "command": "python3 train.py",
 *         "stacks": "Thread 0x…" and "where": "train.py:17 in main", or "why": "not a Python …",
 *         "calls": […] of backend muster (process/stack/flights.h)}]}
 *
 * parent is 0 for the container's main process. Numbers are those that the supervisor sees.
 *
 * Layer: services; the supervisor's. Thread: the loop's. Ownership: stacks_take makes it, it frees
 * itself after `done`, or stacks_cancel ends it.
 */
#pragma once

#include <jansson.h>
#include <muster/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

struct stacks;

struct stacks_root {
    const char *id; /* copied */
    long rank;      /* -1: the attempt has none */
    bool contained; /* it runs podman: only processes in podman's container count */
    bool quiet;     /* its processes are not sent a signal; only what /proc shows is reported */
    pid_t pid;      /* the attempt's monitor: the processes are below it */
    pid_t main_pid; /* this process is reported first; 0: not known */
};

struct stacks_options {
    int64_t sample_ms; /* how long processor time is measured; 0: it is not measured */
    int64_t limit_ms;  /* for the whole request, without the sample */
};

typedef void (*stacks_done_fn)(void *data, const json_t *report);

int stacks_take(uv_loop_t *loop, const struct stacks_root *roots, size_t count,
                const struct stacks_options *options, stacks_done_fn done, void *data,
                struct stacks **ret, struct muster_err *err);
/* After this `done` is not called. `stacks` may be NULL. */
void stacks_cancel(struct stacks *stacks);
