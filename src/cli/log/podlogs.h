/* The logs of the containers of many pods, read as they come and shown on a screen.
 *
 * Fed with pods as a watch reports them, it reads every container from its start to its end, each
 * of its restarts, and goes on where it was when the controller is replaced.
 *
 * Layer: cli, on the loop. Ownership: new/free; run the loop once more after free.
 */
#pragma once

#include "cli/log/podlog_read.h"

/* Options are copied, their texts borrowed. NULL when out of memory. */
struct podlogs *podlogs_new(struct cli *cli, struct screen *screen,
                            const struct podlogs_options *options);
void podlogs_free(struct podlogs *logs);

/* A pod as it is now; `gone`: it was deleted, what is left of its logs is read (with the status it
 * had). */
void podlogs_pod(struct podlogs *logs, const json_t *pod, bool gone);

/* Everything that is there to be read has been read. */
bool podlogs_idle(const struct podlogs *logs);

/* The same of the containers whose newest run has ended. */
bool podlogs_settled(const struct podlogs *logs);

/* With ends_with_start: one run of a container was read to its end. */
bool podlogs_read_one(const struct podlogs *logs);

/* Without follow: why a log could not be read; 0 when all were. */
int podlogs_error(const struct podlogs *logs, struct muster_err *err);

/* The last lines of a container, see logview_last_line. */
const char *podlogs_last_line(const struct podlogs *logs, const char *pod, const char *container,
                              size_t index);

/* The last line that the container's first run printed, of the first pod of this name; NULL: none,
 * or it has not been read yet. Borrowed. */
const char *podlogs_first_failure(const struct podlogs *logs, const char *pod,
                                  const char *container);
