/* The headers of a SPDY/3.1 stream: names and values, which all frames of a connection send through
 * one zlib stream.
 *
 * Layer: services; pure. Ownership: new/free.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { SPDY_HEADERS_MAX = 32, SPDY_HEADER_BYTES_MAX = 4096 };

struct spdy_headers {
    size_t count;
    const char *names[SPDY_HEADERS_MAX]; /* point into text, where each ends with a NUL */
    const char *values[SPDY_HEADERS_MAX];
    size_t used;
    char text[SPDY_HEADER_BYTES_MAX];
};

/* Returns the value of a header; NULL if there is none. Names ignore case. */
const char *spdy_header(const struct spdy_headers *headers, const char *name);

/* The state of the connection's zlib stream: earlier headers, to which later ones refer. */
struct spdy_inflater;

/* Returns NULL if out of memory. */
struct spdy_inflater *spdy_inflater_new(void);
/* Frees the inflater, which may be NULL. Returns NULL. */
struct spdy_inflater *spdy_inflater_free(struct spdy_inflater *inflater);

/* Reads a header block. Returns false if it is not one, or exceeds the limits above: then the
 * inflater cannot be used any more. */
bool spdy_inflate(struct spdy_inflater *inflater, const unsigned char *bytes, size_t count,
                  struct spdy_headers *ret);
