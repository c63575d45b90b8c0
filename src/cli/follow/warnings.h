/* The warnings of `run` while a job goes on, each printed once: events of its pods, a full disk.
 *
 * Layer: cli, on the loop. Ownership: what was told lies in the followed job.
 */
#pragma once

#include "cli/follow/followed.h"

/* Limits that cannot be kept, PID namespaces that cannot be had. Asks once for all pods that have
 * started meanwhile, at most every `pause_ms`: the controller looks through thousands of events. */
void warnings_isolation(struct follow *follow, int64_t pause_ms);

/* Why a pod has no container yet: one whose supervisor cannot be started has no status that would
 * say so. */
void warnings_unstarted(struct followed_job *job);

/* The disk of muster's own state is full, once. */
void warnings_disk(struct follow *follow);
