/* Identifies a process to the coordinator: its address, the token, a name, an incarnation.
 *
 * Layer: worker (part of libmuster). Memory: texts are the caller's to free. Thread: any.
 */
#pragma once

#include "wire/incarnation.h"
#include "wire/wire.h"

#include <pthread.h>

/* Reads the token from the text, or if this is NULL from the environment. MUSTER_EINVAL. */
int identity_token(const char *said, uint8_t ret[WIRE_TOKEN_BYTES], struct muster_err *err);
int identity_names(const char *coordinator, const char *name, char **ret_coordinator,
                   char **ret_name, struct muster_err *err);
int identity_copy(const char *text, size_t most, const char *what, char **ret,
                  struct muster_err *err);
/* Returns the HELLO of this process. */
struct wire_message identity_hello(uint64_t incarnation, const uint8_t token[WIRE_TOKEN_BYTES]);
/* Reads the program's option, or if it is 0, MUSTER_SET_ASIDE. MUSTER_ECONFIG: this is not a
 * number. */
int identity_set_aside(uint32_t said, bool *ret, struct muster_err *err);
/* Makes a new incarnation of this process, for training (0) or work by leases (INCARNATION_LEASES).
 * It is not 0. */
int identity_incarnation(uint64_t kind, uint64_t *ret, struct muster_err *err);
/* Initialises the mutex and the condition, which uses the monotonic clock. */
void identity_waiting(pthread_mutex_t *mutex, pthread_cond_t *changed);
