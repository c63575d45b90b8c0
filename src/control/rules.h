/* The life of a job as a table of rules.
 *
 * Layer: pure. Ownership: see step.h.
 */
#pragma once

#include "control/step.h"

/* Applies the rules until none fits, and updates counts and times. Returns the state reached. */
enum control_state control_apply_rules(struct control_step *step);

/* ---- The sentences of the rules (sentences.c) ---- */

typedef void control_say_fn(const struct control_step *step, struct buf *out);

control_say_fn control_say_created, control_say_stopped, control_say_suspended, control_say_resumed,
    control_say_running, control_say_succeeded, control_say_backoff, control_say_deadline,
    control_say_failed_never, control_say_failed_permanently, control_say_coordinator_failed,
    control_say_lost_workers, control_say_left_untrained, control_say_restarting,
    control_say_restarting_all, control_say_restarted_enough;

/* Returns why the job was ended from outside; NULL: it was not. */
const char *control_stop_text(const struct control_step *step);
