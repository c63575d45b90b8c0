/* Runs the driver over the API server, and logs and counts what it does.
 *
 * Layer: program. Thread: the loop's. Memory: the caller's; work_close, after which the loop must
 * run once more. What it is given is borrowed until then.
 */
#pragma once

#include "controller/driver.h"
#include "loop/alarm.h"
#include "operator/metrics.h"
#include "operator/options.h"

struct work {
    const struct operator_options *options;
    struct metrics *metrics;
    struct cluster *cluster;
    struct alarm_clock alarm; /* when the driver is due */
    struct driver *driver;    /* NULL: it has not begun, or has ended */
    int64_t began_unix_ms;    /* the driver did */
    bool other_said;          /* that another operator works on a job of ours */
    bool drops_said;          /* that the definition of PyTorchJobs drops what we count */
};

void work_init(struct work *work, uv_loop_t *loop, const struct operator_options *options,
               struct metrics *metrics);
int work_begin(struct work *work, struct cluster *cluster, struct muster_err *err);
/* Nothing is sent any more; it may begin again. */
void work_end(struct work *work);
void work_close(struct work *work);
