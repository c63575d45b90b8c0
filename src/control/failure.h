/* Describes how a pod failed, and decides what of it counts.
 *
 * Layer: pure. Texts are borrowed from the pod.
 */
#pragma once

#include "control/observe.h"

/* Failures of a pod so far: restarts of its containers in place, those that are down after a
 * failure, and the pod's own end. Where the job's own containers have ended before others, theirs
 * alone. */
int64_t control_count_failures(const struct job *job, const struct control_member *pod);

/* The code that the ExitCode policy judges: of the main container, else of the first container that
 * failed; -1 when none ended (evicted, node lost). */
int control_exit_code(const json_t *pod);

/* SIGTERM ended it, from outside or by its own handler (143), or Kubernetes says that it was
 * disrupted (the condition DisruptionTarget): the cause is outside of the program. */
bool control_is_preempted(const json_t *pod);

/* The exit code of a container's last end, also where it runs again; -1: it has not ended. */
int control_last_exit_code(const json_t *pod, const char *container);

/* Upstream's rule: 128 and more (a signal) may be retried, 1 to 127 are permanent; so may a pod
 * whose containers never ended by themselves. */
bool control_may_retry(int exit_code);

/* The pod's failure; found is false when it has none. With `dead` only containers that are down
 * count, else also those that failed before and run again. */
struct control_failure control_pod_failure(const json_t *pod, bool dead);

struct control_failure control_first_failure_of(const struct job *job, const json_t *pods);
