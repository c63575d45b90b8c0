/* Turns a supervisor's messages about attempts into the events of process.h.
 *
 * Layer: services; private to the client.
 */
#pragma once

#include "process/process.h"

/* Calls the event's function, where there is one. False: it is about the supervisor itself, or
 * nothing that is known. */
bool events_tell(const struct process_events *to, void *data, const json_t *event);
