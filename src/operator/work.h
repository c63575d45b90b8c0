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
    struct alarm_clock alarm; /* when the driver needs its next turn */
    struct driver *driver;    /* NULL: it has not begun, or has ended */
    int64_t began_unix_ms;    /* when the driver began */
    bool other_said;          /* it was reported that another operator works on our jobs */
    bool drops_said;          /* it was reported that the definition drops our counters */
};

void work_init(struct work *work, uv_loop_t *loop, const struct operator_options *options,
               struct metrics *metrics);
int work_begin(struct work *work, struct cluster *cluster, struct muster_err *err);
/* Ends the driver: nothing is sent any more; work_begin may be called again. */
void work_end(struct work *work);
void work_close(struct work *work);
