/* The status file (--status-file): the progress of the job, as a JSON object, for programs that
 * watch it. docs/coordinator.md describes its content.
 *
 * It is replaced by rename, so that a reader sees a whole file. If it cannot be written the job
 * goes on, and the next status is tried again.
 *
 * Layer: program (coordinator). Memory: the caller's. Thread: one.
 */
#pragma once

#include "coordinator/arbiter/arbiter.h"
#include "coordinator/server/pace.h"
#include "coordinator/server/slow.h"

enum { STATUS_BYTES_MAX = 64 << 10 };

struct status_slow {
    const char *worker;
    const struct slow_worker *slow;
};

struct status {
    const struct arbiter *arbiter;
    const struct pace *pace;
    const struct pace *leased; /* of data sets by leases, by their numbers; it has only samples */
    const struct status_slow *slow;
    size_t slow_count;
    bool over; /* the job has ended */
};

/* Writes the status file; path: NULL for none. MUSTER_ENOMEM, MUSTER_ECREATE. */
int status_write(const char *path, const struct status *status, struct muster_err *err);

/* Reads the recoveries that an earlier coordinator has written there. A file of another form is
 * ignored. */
void status_read_recoveries(const char *path, struct pace *pace);
