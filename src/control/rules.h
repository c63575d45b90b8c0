/* The life of a job as a table of rules.
 *
 * Layer: pure. Ownership: see step.h.
 */
#pragma once

#include "control/step.h"

/* Applies the rules until none fits and brings counts and times up to date. Returns the state
 * reached. */
enum control_state control_apply_rules(struct control_step *step);

/* Does a failed pod of that replica end the job (Never, or a permanent exit code)? */
bool control_is_permanent(const struct job *job, const struct control_member *pod);
