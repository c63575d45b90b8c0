/* Identifies a process: PIDs are used again, also after a reboot, but not PID, start time and boot
 * together. Its text is "PID-STARTTICKS-BOOTID".
 *
 * Layer: services (reads /proc). Thread-safe.
 */
#pragma once

#include <muster/err.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { IDENTITY_BYTES_MAX = 96 };

/* Returns the identity of a process as text; the caller frees. NULL when there is no such
 * process. */
char *identity_text(int64_t pid);

/* The same, in the caller's memory. Returns false when there is no such process. */
bool identity_of(pid_t pid, char ret[IDENTITY_BYTES_MAX]);

/* Opens a pidfd of exactly that process; the caller closes it. MUSTER_ENOENT: it is gone (a zombie
 * counts as gone); MUSTER_EDATA: the text is not an identity. */
int identity_open(const char *identity, int *ret_fd, struct muster_err *err);

/* Returns this boot's id; "" when the system does not have one. */
void identity_boot(char ret[IDENTITY_BYTES_MAX]);
