/* A log that a program's standard error is, or its child's: it cannot be cut while somebody writes
 * into it, so one that has become too long is put aside whole, and a new one begins.
 *
 * Layer: base (does I/O; not for pure code). Thread-safe. A process that holds the old one open
 * still writes into that.
 */
#pragma once

#include <sys/types.h>

/* Opens FOLDER/NAME to append to it, and makes it (0600). If it has more than bytes_max, it is
 * FOLDER/NAME.old from now on, in place of the one before, and a new one is made; where that cannot
 * be, it stays. -1 with errno: it cannot be opened. The caller closes. */
int log_file_open(const char *folder, const char *name, off_t bytes_max);
