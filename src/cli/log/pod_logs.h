/* The logs of the containers of many pods, read as they come and shown on a screen.
 *
 * Fed with pods as a watch reports them, it reads every container from its start to its end, each
 * of its restarts, and goes on where it was when the controller is replaced.
 *
 * Layer: cli, on the loop. Ownership: new/free; run the loop once more after free.
 */
#pragma once

#include "cli/log/pod_log_read.h"

/* Options are copied, their texts borrowed. NULL when out of memory. */
struct pod_logs *pod_logs_new(struct cli *cli, struct screen *screen,
                              const struct pod_logs_options *options);
void pod_logs_free(struct pod_logs *logs);

/* Takes a pod as it is now. `gone`: the pod was deleted (the status is its last one), and the rest
 * of its logs is read. */
void pod_logs_pod(struct pod_logs *logs, const json_t *pod, bool gone);

/* Whether everything that exists to be read has been read. */
bool pod_logs_idle(const struct pod_logs *logs);

/* The same for the containers whose newest run has ended. */
bool pod_logs_settled(const struct pod_logs *logs);

/* Reads the rest of the logs from the files of this machine: see podlog_finish. */
void pod_logs_finish(struct pod_logs *logs);

/* With ends_with_start: whether one run of a container was read to its end. */
bool pod_logs_read_one(const struct pod_logs *logs);

/* Without follow: the reason why a log could not be read; 0 when all were. */
int pod_logs_error(const struct pod_logs *logs, struct muster_err *err);

/* The last lines of a container, see log_view_last_line. */
const char *pod_logs_last_line(const struct pod_logs *logs, const char *pod, const char *container,
                               size_t index);

/* The last line that the first run of the container printed, in the first pod of this name; NULL if
 * there is none, or if it has not been read yet. Borrowed. */
const char *pod_logs_first_failure(const struct pod_logs *logs, const char *pod,
                                   const char *container);
