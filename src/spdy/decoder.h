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
    SPDY_NOTHING, /* the bytes were taken, and say nothing (yet) */
    SPDY_OPEN,    /* the client opens a stream, with headers; `last`: it will send nothing there */
    SPDY_DATA,    /* `count` bytes (may be 0); `last`: the client sends no more there */
    SPDY_RESET,   /* nothing more of the stream is of use to the client */
    SPDY_PING,    /* to be answered with its number, which is in `stream` */
    SPDY_GOAWAY,  /* the client opens no more streams */
};

struct spdy_event {
    enum spdy_kind kind;
    uint32_t stream;
    bool last;
    const char *bytes; /* in what was read */
    size_t count;
    const struct spdy_headers *headers; /* until the next call */
};

struct spdy_decoder;

/* NULL without memory. */
struct spdy_decoder *spdy_decoder_new(void);
/* NULL is fine; returns NULL. */
struct spdy_decoder *spdy_decoder_free(struct spdy_decoder *decoder);

/* Takes bytes from the beginning, and says what they mean. Returns how many were taken, at least
 * one; -1: that is no SPDY/3.1, and nothing more can be read. `count` is not 0. */
long spdy_decode(struct spdy_decoder *decoder, const char *bytes, size_t count,
                 struct spdy_event *ret);
