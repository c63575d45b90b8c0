/* Which process a number means: pids are used again, also after a reboot; pid, start time and boot
 * together are not. As text "PID-STARTTICKS-BOOTID".
 *
 * Layer: services (reads /proc). Thread-safe.
 */
#pragma once

#include <muster/err.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { IDENTITY_BYTES_MAX = 96 };

/* The text of a process; the caller frees. NULL when there is no such process. */
char *identity_text(int64_t pid);

/* The same into the caller's memory. False when there is no such process. */
bool identity_of(pid_t pid, char ret[IDENTITY_BYTES_MAX]);

/* A pidfd of exactly that process; the caller closes. MUSTER_ENOENT: it is gone (a zombie counts as
 * gone); MUSTER_EDATA: the text is no identity. */
int identity_open(const char *identity, int *ret_fd, struct muster_err *err);

/* This boot's id; "" when the system does not tell. */
void identity_boot(char ret[IDENTITY_BYTES_MAX]);
