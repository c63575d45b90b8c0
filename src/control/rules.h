/* The life of a job as a table of rules.
 *
 * Layer: pure. Ownership: see step.h.
 */
#pragma once

#include "control/step.h"

/* Applies the rules until none fits and brings counts and times up to date. Returns the state
 * reached. */
enum control_state control_apply_rules(struct control_step *step);
