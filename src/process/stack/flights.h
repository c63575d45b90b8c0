/* Finds out which collectives the processes of a job are in, from the flight records
 * (core/flight.h) that libmuster keeps in memory that is open in each of them. The process does not
 * have to answer: this also works for stopped processes and for programs in C.
 *
 * Layer: services (reads /proc). Thread: any. Ownership: new references.
 */
#pragma once

#include <jansson.h>
#include <sys/types.h>

/* Returns an array with one object for each open communicator of the process:
 *
 *     {"group": "91d2…", "rank": 0, "size": 2, "number": 1042, "call": "all_reduce of 4 f32 by
 * sum", "inside": true}
 *
 * number counts the communicator's collectives from 1; 0 is the barrier that forms it. "call" is
 * missing before the first call. NULL when there is no communicator. */
json_t *flights_read(pid_t pid);
