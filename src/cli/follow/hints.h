/* Finds advice for a failure or a wait, by its text.
 *
 * Layer: cli; pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The properties of a job on which advice depends. */
struct hint_job {
    bool private; /* the job has a network of its own (--network private) */
    bool elastic; /* the job has a coordinator */
};

/* The advice about a line that a rank printed last; NULL if there is none. Static. */
const char *hint_of_line(const char *line, struct hint_job job);

/* The command that makes the object or key for which a container waits, by the message of its state
 * "waiting"; "" for any other message. */
void hint_of_waiting(const char *message, const char *namespace, char *ret, size_t size);
