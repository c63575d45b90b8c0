/* Notes about what a job lacks on this machine, which each new controller gets: each with the
 * reason of the event that it becomes.
 *
 * Layer: services. Thread: the supervisor's loop.
 */
#pragma once

#include "process/machine/isolation.h"
#include "process/wire/listener.h"

void machine_notes_tell(const struct isolation *isolation, struct listener_client *client);
