/* Finds the pods that have failed, or are lost with their node, so that something must be done
 * about them.
 *
 * Layer: pure.
 */
#pragma once

#include "control/step.h"

/* Is a failed pod of that replica not made again (Never, or a permanent exit code)? */
bool control_is_permanent(const struct job *job, const struct control_member *pod);

/* The first failed pod in range that fits: permanent or not, under Never or not; NULL: none. A
 * Worker that a coordinator goes on without is none. */
const struct control_member *control_find_broken(const struct control_step *s, bool permanent,
                                                 bool never);
bool control_any_broken(const struct control_step *s);

/* The coordinator of the job has ended well: all records are trained. Its Workers go on to their
 * own end, such as an evaluation; none is made any more. */
bool control_is_trained(const struct control_observed *o);

/* Called after that: how many Workers have not ended. */
int control_unfinished_workers(const struct control_observed *o);

/* All Workers have ended with 0 by themselves, and the coordinator goes on: when the job is not
 * waited for any more. INT64_MAX: there is more to come. A coordinator that is down at the moment
 * has time to be started again, and to say that all is trained. */
int64_t control_untrained_at(const struct control_step *s);

/* A Worker that its coordinator told that the job has failed (exit code of MUSTER_EFAILED) is no
 * failure of its own for some seconds, in which the coordinator ends, too, and says why. Returns
 * when the first such time is over; INT64_MAX: there is no such Worker. */
int64_t control_coordinator_end_awaited_until(const struct control_step *s);

/* The coordinator ended with a code of its own (1 to 127), whatever its pod does about it. */
bool control_coordinator_failed(const struct control_step *s);

/* In how many milliseconds the pod is lost with its node: 0 if it is, INT64_MAX if it will not be
 * by what is known. Nobody will ever report that a lost pod has ended: it is deleted by force.
 * *ret_node: the node, where the result is less than INT64_MAX. */
int64_t control_lost_in_ms(const struct control_view *view, const struct control_member *pod,
                           const struct control_node **ret_node);
