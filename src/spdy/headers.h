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
    const char *names[SPDY_HEADERS_MAX]; /* in text, which ends each with a NUL */
    const char *values[SPDY_HEADERS_MAX];
    size_t used;
    char text[SPDY_HEADER_BYTES_MAX];
};

/* NULL: not there. Names ignore case. */
const char *spdy_header(const struct spdy_headers *headers, const char *name);

/* What has been read of the connection's headers, which the next ones refer to. */
struct spdy_inflater;

/* NULL without memory. */
struct spdy_inflater *spdy_inflater_new(void);
/* NULL is fine; returns NULL. */
struct spdy_inflater *spdy_inflater_free(struct spdy_inflater *inflater);

/* False: that is no header block, or one over the limits above. The inflater is of no use then. */
bool spdy_inflate(struct spdy_inflater *inflater, const unsigned char *bytes, size_t count,
                  struct spdy_headers *ret);
