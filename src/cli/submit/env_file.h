/* --env-file, in docker's format: NAME=VALUE with the value as it stands (no quotes, nothing
 * expanded), NAME alone for the shell's value, lines that begin with '#', empty lines. A byte order
 * mark and a CR at the end of a line are ignored.
 *
 * Layer: cli; pure.
 */
#pragma once

#include <muster/err.h>
#include <stddef.h>

/* Calls `each` for every variable; value NULL: the line has only NAME. A negative result ends the
 * reading, and `path`:LINE is put before its sentence. Errors never show a line's text, because it
 * may be a secret. MUSTER_EDATA. Writes into `text` (NUL-terminated). */
int env_file_read(const char *path, char *text, size_t bytes,
                  int (*each)(void *data, const char *name, const char *value), void *data,
                  struct muster_err *err);
