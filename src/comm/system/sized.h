/* Structs of the public API whose size the caller tells (include/muster/err.h, "Sized structs").
 * Only the bytes that struct_size covers are read or written.
 *
 * Layer: comm; pure. Memory: the caller's. Thread: any.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <muster/err.h>

/* The name of a caller's struct and of its initialiser, for messages. */
struct sized_kind {
    size_t bytes; /* its size in this library */
    const char *name;
    const char *initializer;
};

#define SIZED_KIND(type, initializer)                                                              \
    {                                                                                              \
        sizeof(struct type), #type, #initializer                                                   \
    }

extern const struct sized_kind sized_options, sized_store, sized_call, sized_message, sized_state;

/* Copies the fields that the caller's struct has to *own, which holds the defaults. MUSTER_EINVAL:
 * theirs is NULL or was not initialised; MUSTER_EUNSUPPORTED: it sets fields that this library does
 * not have. */
int sized_read(const struct sized_kind *kind, void *own, const void *theirs,
               struct muster_err *err);

/* Whether the caller's struct is as large as this library's, so that it can be read as it is. */
static inline bool sized_is_ours(const struct sized_kind *kind, const void *theirs)
{
    size_t bytes = 0;
    if (theirs) {
        memcpy(&bytes, theirs, sizeof bytes);
    }
    return bytes == kind->bytes;
}

/* Checks whether a result can be written to theirs later. */
int sized_check(const struct sized_kind *kind, const void *theirs, struct muster_err *err);
/* Writes a result; fields that only the caller's struct has become zero. theirs must have been
 * checked. */
void sized_write(const struct sized_kind *kind, void *theirs, const void *own);

int sized_refuse_err(struct muster_err *err);
/* Called first in each public function: err must be NULL or initialised. */
static inline int sized_check_err(struct muster_err *err)
{
    return !err || err->struct_size >= offsetof(struct muster_err, text) ? 0
                                                                         : sized_refuse_err(err);
}
/* Copies a failure to err, unless err is NULL. */
void sized_copy_err(struct muster_err *err, const struct muster_err *failure);
