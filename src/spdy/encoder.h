/* The frames of SPDY/3.1 that a server of streams writes.
 *
 * Its header blocks are empty, so they are written as zlib's stored blocks: a connection needs no
 * compressor, which takes a quarter of a megabyte.
 *
 * Layer: services; pure. Ownership: nothing is kept but a flag.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SPDY_HEAD_BYTES = 8,
    SPDY_FRAME_BYTES_MAX = 32, /* limit for each frame below except data */
};

enum spdy_status {
    SPDY_PROTOCOL_ERROR = 1,
    SPDY_REFUSED_STREAM = 3,
};

struct spdy_encoder {
    bool began; /* the zlib stream of headers has begun */
};

/* Each function writes a frame and returns its length. */

/* Accepts the stream that the client opened. */
size_t spdy_reply(struct spdy_encoder *encoder, uint32_t stream, char ret[SPDY_FRAME_BYTES_MAX]);
size_t spdy_reset(uint32_t stream, enum spdy_status status, char ret[SPDY_FRAME_BYTES_MAX]);
size_t spdy_ping(uint32_t id, char ret[SPDY_FRAME_BYTES_MAX]);
/* Tells the client that `count` bytes of the stream's data were taken: it may send as many more. */
size_t spdy_window(uint32_t stream, uint32_t count, char ret[SPDY_FRAME_BYTES_MAX]);
/* Writes the head of a data frame of `count` bytes, which must be less than 16 MiB; `last`: the
 * stream ends with this frame. */
size_t spdy_data_head(uint32_t stream, size_t count, bool last, char ret[SPDY_HEAD_BYTES]);
