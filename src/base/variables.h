/* Environment variables on their way from a shell to a rank, as bytes:
 *
 *     "NAME=value\0" … "\0" "NAME=value\0" …
 *
 * Before the empty entry stands what the shell had, after it what was asked for by name (-e,
 * --env-file), which wins over a job's file. Names and values are any bytes but NUL: a kernel asks
 * for no more, and JSON could not hold them.
 *
 * Layer: base (variables_read does I/O; the rest is pure). Ownership: variables_done; entries point
 * into `bytes`.
 */
#pragma once

#include <muster/err.h>
#include <stddef.h>

enum {
    VARIABLES_BYTES_MAX = 2900 << 10, /* under what a request of the API may have */
    VARIABLE_BYTES_MAX = 128 << 10,   /* the kernel's (MAX_ARG_STRLEN), the NUL included */
};

struct variables {
    char *bytes;
    char **shell; /* NULL-terminated "NAME=value" */
    char **given; /* the same, of what was asked for by name */
};

/* A copy of the bytes. MUSTER_EDATA when they are not such a list, MUSTER_ETOOBIG over the limits.
 */
int variables_parse(const char *bytes, size_t count, struct variables *ret, struct muster_err *err);

/* A file of ours: no link is followed, and a file of somebody else is refused. MUSTER_ENOENT when
 * it is not there. */
int variables_read(const char *path, struct variables *ret, struct muster_err *err);

void variables_done(struct variables *variables);

/* The bytes before '='; 0 for no "NAME=value". */
size_t variables_name_length(const char *entry);

/* The value in a NULL-terminated list; NULL when it is not there. */
const char *variables_value(char *const *list, const char *name);

/* The entries of several lists (any may be NULL) in their order; of one name only the first. A
 * NULL-terminated array of borrowed entries, which the caller frees; NULL: out of memory. */
char **variables_merge(char *const *const *lists, size_t count);
