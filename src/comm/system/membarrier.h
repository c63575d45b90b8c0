/* Registers this process for membarrier(2), once. Layer: comm. Thread: any. */
#pragma once

#include <stdbool.h>

/* Returns false if the kernel, or a container's filter of system calls, refuses membarrier. The
 * first call of a process that has several threads takes 4 to 15 ms (the kernel waits for a grace
 * period of RCU), all other calls take some microseconds. */
bool membarrier_register(void);
