/* The warnings of `run` while a job goes on, each printed once: events of its pods, a full disk.
 *
 * Layer: cli, on the loop. Ownership: the followed job remembers which warnings were printed.
 */
#pragma once

#include "cli/follow/followed.h"

/* Warns about limits that cannot be kept and PID namespaces that are not available. Makes one
 * request for all pods that have started meanwhile, at most every `pause_ms`, because the
 * controller searches thousands of events. */
void warnings_isolation(struct follow *follow, int64_t pause_ms);

/* Warns why a pod has no container yet: a pod whose supervisor cannot be started has no status that
 * says so. */
void warnings_unstarted(struct followed_job *job);

/* Warns, once, that the disk of muster's own state is full. */
void warnings_disk(struct follow *follow);
