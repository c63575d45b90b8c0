/* Finds the pods that have failed, or are lost with their node, so that something must be done
 * about them.
 *
 * Layer: pure.
 */
#pragma once

#include "control/step.h"

/* Whether a failed pod of that replica is not replaced (Never, or a permanent exit code). */
bool control_is_permanent(const struct job *job, const struct control_member *pod);

/* Returns the first failed pod in range that fits: permanent or not, under Never or not; NULL:
 * none. A Worker that the coordinator can continue without does not count. */
const struct control_member *control_find_broken(const struct control_step *s, bool permanent,
                                                 bool never);
bool control_any_broken(const struct control_step *s);

/* Whether the coordinator of the job has ended well: all records are trained. Its Workers continue
 * to their own end, for example with an evaluation; no new Worker is created. */
bool control_is_trained(const struct control_observed *o);

/* Returns how many Workers have not ended; called after the coordinator's end. */
int control_unfinished_workers(const struct control_observed *o);

/* If all Workers have ended with 0 by themselves, and the coordinator still runs: returns the time
 * at which the job is no longer waited for. INT64_MAX: it must be waited for. A coordinator that is
 * down at the moment has time to be restarted, and to report that all is trained. */
int64_t control_untrained_at(const struct control_step *s);

/* A Worker may end because its coordinator has reported to it that the job has failed (exit code of
 * MUSTER_EFAILED). For some seconds this does not count as the Worker's own failure; in this time
 * the coordinator ends, too, and gives the reason. Returns when the first such time is over;
 * INT64_MAX: there is no such Worker. */
int64_t control_coordinator_end_awaited_until(const struct control_step *s);

/* Whether the coordinator ended with a code of its own (1 to 127), whatever its pod does about
 * that. */
bool control_coordinator_failed(const struct control_step *s);

/* Returns in how many milliseconds the pod counts as lost with its node: 0 if it is lost, INT64_MAX
 * if nothing known says that it will be. No kubelet will ever report that a lost pod has ended: it
 * is deleted by force. *ret_node: the node, if the result is less than INT64_MAX. */
int64_t control_lost_in_ms(const struct control_view *view, const struct control_member *pod,
                           const struct control_node **ret_node);
