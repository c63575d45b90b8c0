/* Locals that clean up after themselves, and handing their value on.
 *
 *     muster_auto(free) char *name = strdup(…);
 *     …
 *     return muster_take(name);
 *
 * Layer: base.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define muster_auto(kind) __attribute__((cleanup(cleanup_##kind)))

/* The value of a pointer variable, which becomes NULL: ownership moves to the user of this
 * expression. */
#define muster_take(pointer)                                                                       \
    __extension__({                                                                                \
        __typeof__(pointer) taken_ = (pointer);                                                    \
        (pointer) = NULL;                                                                          \
        taken_;                                                                                    \
    })

static inline void cleanup_free(void *address)
{
    free(*(void **)address);
}

static inline void cleanup_close(const int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
}

static inline void cleanup_fclose(FILE **file)
{
    if (*file) {
        fclose(*file);
    }
}
