/* The bytes of a connection, in pieces: a reader that gets them in pieces must end in the same
 * state as a reader that gets them all at once. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PIECES_BYTES_MAX = 1 << 16 };

struct pieces {
    const char *bytes;
    size_t size;
    size_t step; /* bytes of a piece, at least 1 */
};

/* Reads the input: how many bytes come at once, then the bytes. Returns false if there are too few
 * or too many bytes for a run. */
static inline bool pieces_read(const uint8_t *data, size_t size, struct pieces *ret_whole,
                               struct pieces *ret_torn)
{
    if (size < 1 || size > PIECES_BYTES_MAX) {
        return false;
    }
    const char *bytes = (const char *)data + 1;
    *ret_whole = (struct pieces){bytes, size - 1, size};
    *ret_torn = (struct pieces){bytes, size - 1, data[0] ? data[0] : 1};
    return true;
}

/* Returns how many bytes come next, after `at` bytes. */
static inline size_t pieces_next(const struct pieces *p, size_t at)
{
    return p->size - at < p->step ? p->size - at : p->step;
}
