/* Which collectives hang, and for whom they wait: a sentence for each communicator of which a rank
 * is inside a call.
 *
 * Layer: services; pure. Ownership: a new array of text.
 */
#pragma once

#include <jansson.h>

/* Returns the sentences of a report (process/stack/stacks.h), for example: "all_reduce of 4 f32 by
 * sum (call 1042): ranks 0, 2 wait; rank 1 is missing: in no call since call 1041, sleeping at
 * train.py:17 in slow" */
json_t *collectives_describe(const json_t *report);
/* Returns what the rank waits for, as a sentence; the caller frees. NULL: the rank is not inside a
 * call. */
char *collectives_of_rank(const json_t *report, long rank);
