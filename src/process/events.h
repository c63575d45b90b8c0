/* Turns a supervisor's messages about attempts into the events of process.h.
 *
 * Layer: services; private to the client.
 */
#pragma once

#include "process/process.h"

/* Calls the function for this event, if the caller has set one. Returns false if the event is about
 * the supervisor itself or is not known. */
bool events_tell(const struct process_events *to, void *data, const json_t *event);
