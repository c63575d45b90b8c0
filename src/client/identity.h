/* Identifies a process to the coordinator: its address, the token, a name, an incarnation.
 *
 * Layer: worker (part of libmuster). Memory: texts are the caller's to free. Thread: any.
 */
#pragma once

#include "wire/incarnation.h"
#include "wire/wire.h"

#include <pthread.h>

/* NULL: as the environment says. MUSTER_EINVAL. */
int identity_token(const char *said, uint8_t ret[WIRE_TOKEN_BYTES], struct muster_err *err);
int identity_names(const char *coordinator, const char *name, char **ret_coordinator,
                   char **ret_name, struct muster_err *err);
int identity_copy(const char *text, size_t most, const char *what, char **ret,
                  struct muster_err *err);
/* HELLO of this process. */
struct wire_message identity_hello(uint64_t incarnation, const uint8_t token[WIRE_TOKEN_BYTES]);
/* What the program says, or else (0) MUSTER_SET_ASIDE. MUSTER_ECONFIG: that is no number. */
int identity_set_aside(uint32_t said, bool *ret, struct muster_err *err);
/* A new incarnation of this process, for training (0) or work by leases (INCARNATION_LEASES). Not
 * 0. */
int identity_incarnation(uint64_t kind, uint64_t *ret, struct muster_err *err);
/* The condition is on the monotonic clock. */
void identity_waiting(pthread_mutex_t *mutex, pthread_cond_t *changed);
