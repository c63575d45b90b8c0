/* Ranks that still run after their job has succeeded: who they are is said once, and --after-end
 * ends them.
 *
 * Layer: cli, on the loop. Ownership: the follow's.
 */
#pragma once

#include "cli/follow/followed.h"

/* Says and does what is due now. */
void after_end_check(struct followed_job *job);
