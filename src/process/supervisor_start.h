/* How a job's supervisor is started: its command line, its log, its end of the connection.
 *
 * Layer: services. Thread: the loop's; blocks a few ms.
 */
#pragma once

#include "process/process.h"

enum { SUPERVISOR_LOG_BYTES_MAX = 1 << 20 }; /* not counting the last supervisor's text */

/* `options` must have folder and program. *ret_fd is the connection to the supervisor; the caller
 * closes it. */
int supervisor_start(uv_loop_t *loop, const struct process_job_options *options, int *ret_fd,
                     struct muster_err *err);
