/* Finds advice for a failure or a wait, by its text.
 *
 * Layer: cli; pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* What of a job advice depends on. */
struct hint_job {
    bool private; /* it has a network of its own (--network private) */
    bool elastic; /* it has a coordinator */
};

/* What a rank's last lines say that deserves advice, NULL for any other text; static. */
const char *hint_of_line(const char *line, struct hint_job job);

/* The command that makes the object or key for which a container waits, by the message of its state
 * "waiting"; "" for any other message. */
void hint_of_waiting(const char *message, const char *namespace, char *ret, size_t size);
