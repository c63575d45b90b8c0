/* Registers this process for membarrier(2), once. Layer: comm. Thread: any. */
#pragma once

#include <stdbool.h>

/* False: the kernel, or a container's filter of system calls, has none for us. The first call of a
 * process that has several threads takes 4 to 15 ms (the kernel waits for a grace period of RCU),
 * all others some microseconds. */
bool membarrier_register(void);
