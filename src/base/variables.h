/* Environment variables on their way from a shell to a rank, as bytes:
 *
 *     "NAME=value\0" … "\0" "NAME=value\0" …
 *
 * Before the empty entry are the variables of the shell, after it those that were given by name
 * (-e, --env-file), which override a job's file. Names and values are any bytes but NUL: the kernel
 * demands nothing else, and JSON could not hold them.
 *
 * Layer: base (variables_read does I/O; the rest is pure). Ownership: variables_done; entries point
 * into `bytes`.
 */
#pragma once

#include <muster/err.h>
#include <stddef.h>

enum {
    VARIABLES_BYTES_MAX = 2900 << 10, /* less than a request of the API may have */
    VARIABLE_BYTES_MAX = 128 << 10,   /* the kernel's limit (MAX_ARG_STRLEN), with the NUL */
};

struct variables {
    char *bytes;
    char **shell; /* NULL-terminated "NAME=value" */
    char **given; /* the same, for the variables that were asked for by name */
};

/* Parses a copy of the bytes. Returns MUSTER_EDATA if they are not such a list, MUSTER_ETOOBIG over
 * the limits. */
int variables_parse(const char *bytes, size_t count, struct variables *ret, struct muster_err *err);

/* Reads a file of ours: a link is not followed, and a file of another user is refused. Returns
 * MUSTER_ENOENT if the file does not exist. */
int variables_read(const char *path, struct variables *ret, struct muster_err *err);

void variables_done(struct variables *variables);

/* Returns the number of bytes before '=', or 0 if the entry is not "NAME=value". */
size_t variables_name_length(const char *entry);

/* Returns the value in a NULL-terminated list, or NULL if it is not in the list. */
const char *variables_value(char *const *list, const char *name);

/* Merges several lists (any may be NULL) in their order; if a name occurs more than once, only its
 * first entry is taken. Returns a NULL-terminated array of borrowed entries, which the caller
 * frees, or NULL when out of memory. */
char **variables_merge(char *const *const *lists, size_t count);
