/* Describes how a pod failed, and decides what of it counts.
 *
 * Layer: pure. Texts are borrowed from the pod.
 */
#pragma once

#include "control/observe.h"

/* Returns the failures of a pod so far: restarts of its containers in place, containers that are
 * down after a failure, and the pod's own end. If the job's own containers have ended before
 * others, only they count. */
int64_t control_count_failures(const struct job *job, const struct control_member *pod);

/* Returns the code that the ExitCode policy judges: of the main container, else of the first
 * container that failed; -1 if none ended (evicted, node lost). */
int control_exit_code(const json_t *pod);

/* Whether SIGTERM ended the pod, from outside or by its own handler (143), or Kubernetes reports a
 * disruption (the condition DisruptionTarget): the cause is outside the program. */
bool control_is_preempted(const json_t *pod);

/* Returns the exit code of a container's last end, also if it runs again; -1: it has not ended. */
int control_last_exit_code(const json_t *pod, const char *container);

/* Upstream's rule: codes of 128 and more (a signal) may be retried, 1 to 127 are permanent; a pod
 * whose containers never ended by themselves may be retried, too. */
bool control_may_retry(int exit_code);

/* Returns the pod's failure; found is false if it has none. With `dead` only containers that are
 * down count, otherwise also those that failed before and run again. */
struct control_failure control_pod_failure(const json_t *pod, bool dead);

struct control_failure control_first_failure_of(const struct job *job, const json_t *pods);
