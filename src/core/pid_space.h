/* Tells whether two programs mean the same process by the same PID.
 *
 * Layer: core. Thread: any.
 */
#pragma once

#include <stdint.h>

/* Returns a hash of the running kernel and the PID namespace; 0: /proc gives no answer. */
uint64_t pid_space(void);
