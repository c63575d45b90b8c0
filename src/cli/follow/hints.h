/* What to do about a failure or a wait, by its text.
 *
 * Layer: cli; pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* What a rank's last lines say that deserves advice, NULL for any other text; static. `private`:
 * the job has a network of its own (--network private). */
const char *hint_of_line(const char *line, bool private);

/* The command that makes the object or key for which a container waits, by the message of its state
 * "waiting"; "" for any other message. */
void hint_of_waiting(const char *message, const char *namespace, char *ret, size_t size);
