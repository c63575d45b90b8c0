/* Describes, for error messages, which call another rank is in. Layer: comm. Thread: any. */
#pragma once

#include "comm/state/state.h"

/* Returns the last collective that the rank is known to have entered; 0: none. *ret_ended: the rank
 * has left it. */
uint64_t doing_last_call(struct muster_comm *comm, int rank, uint64_t *ret_shape,
                         uint64_t *ret_count, bool *ret_ended);
/* Writes "is in call 2, barrier (process 12 sleeps)", "is in no call since call 1, …" or "has
 * entered no call". Returns that call's number. */
uint64_t doing_describe(struct muster_comm *comm, int rank, char *ret, size_t size_bytes);
