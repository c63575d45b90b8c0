/* A log file that is the standard error of a program or of its child. It cannot be cut while a
 * process writes into it, so a log that has become too long is put aside whole, and a new one
 * begins.
 *
 * Layer: base (does I/O; not for pure code). Thread-safe. A process that has the old file open
 * still writes into it.
 */
#pragma once

#include <sys/types.h>

/* Opens FOLDER/NAME to append to it, and creates it (0600). If it has more than bytes_max, it is
 * first renamed to FOLDER/NAME.old, which replaces the one before, and a new file is made; if that
 * fails, the file is used as it is. Returns -1 with errno if it cannot be opened. The caller closes
 * it. */
int log_file_open(const char *folder, const char *name, off_t bytes_max);
