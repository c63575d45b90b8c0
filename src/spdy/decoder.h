/* The frames of SPDY/3.1, as its server reads them: bytes go in, their meaning comes out.
 *
 * A data frame is given as far as it is there, a control frame when it is whole. The caller decides
 * which frames are permitted when.
 *
 * Layer: services; pure. Ownership: new/free.
 */
#pragma once

#include "spdy/headers.h"

#include <stdint.h>

enum spdy_kind {
    SPDY_NOTHING, /* the bytes were taken; they say nothing, or nothing yet */
    SPDY_OPEN,    /* the client opens a stream, with headers; `last`: it will send no data in it */
    SPDY_DATA,    /* `count` bytes (may be 0); `last`: the client sends no more in this stream */
    SPDY_RESET,   /* the client has no more use for the stream */
    SPDY_PING,    /* must be answered with its number, which is in `stream` */
    SPDY_GOAWAY,  /* the client opens no more streams */
};

struct spdy_event {
    enum spdy_kind kind;
    uint32_t stream;
    bool last;
    const char *bytes; /* in the bytes that were given to spdy_decode */
    size_t count;
    const struct spdy_headers *headers; /* valid until the next call */
};

struct spdy_decoder;

/* Returns NULL if out of memory. */
struct spdy_decoder *spdy_decoder_new(void);
/* Frees the decoder, which may be NULL. Returns NULL. */
struct spdy_decoder *spdy_decoder_free(struct spdy_decoder *decoder);

/* Takes bytes from the beginning of `bytes`, and sets *ret to what they mean. Returns how many were
 * taken, at least one; -1 if the bytes are not SPDY/3.1: then nothing more can be read. `count`
 * must not be 0. */
long spdy_decode(struct spdy_decoder *decoder, const char *bytes, size_t count,
                 struct spdy_event *ret);
