/* Handles ranks that still run after their job has succeeded, or was deleted: prints this once,
 * and with --after-end ends those of a job that has succeeded.
 *
 * Layer: cli, on the loop. Ownership: the follow's.
 */
#pragma once

#include "cli/follow/followed.h"

/* Prints the messages that are due now, and ends the ranks that are to end now. */
void after_end_check(struct followed_job *job);
