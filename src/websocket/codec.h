/* The frames of a WebSocket (RFC 6455), as its server reads and writes them.
 *
 * A reader keeps what has come in a buffer of its own and takes pieces from its beginning. A data
 * frame is given as far as it is there: messages of any size pass through a small buffer. A control
 * frame is given whole.
 *
 * Layer: services; pure. Ownership: nothing is kept but numbers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum websocket_opcode {
    WEBSOCKET_CONTINUATION = 0,
    WEBSOCKET_TEXT = 1,
    WEBSOCKET_BINARY = 2,
    WEBSOCKET_CLOSE = 8,
    WEBSOCKET_PING = 9,
    WEBSOCKET_PONG = 10,
};

/* The codes of a close frame, RFC 6455 section 7.4.1. */
enum websocket_code {
    WEBSOCKET_NORMAL = 1000,
    WEBSOCKET_PROTOCOL_ERROR = 1002,
    WEBSOCKET_REFUSED = 1008,
};

enum {
    WEBSOCKET_HEAD_BYTES_MAX = 10,      /* the head that a server writes, which has no mask */
    WEBSOCKET_CONTROL_BYTES_MAX = 125,  /* limit for the payload of a control frame */
    WEBSOCKET_WHOLE_CONTROL_BYTES = 131 /* with head and mask; a reader's buffer has room for it */
};

struct websocket_decoder {
    bool in_frame;
    bool in_message;     /* between the first and the last frame of a message */
    bool final;          /* the frame ends its message */
    bool begins;         /* no piece of the message was given yet */
    uint64_t left_bytes; /* bytes of the frame that are still to come */
    unsigned char mask[4];
    unsigned mask_at;
};

struct websocket_piece {
    enum websocket_opcode opcode; /* CLOSE, PING or PONG; TEXT or BINARY for a piece of a message */
    bool first;                   /* the first piece of its message */
    bool last;
    char *bytes; /* in the buffer that was read, unmasked */
    size_t count;
};

/* Decodes what is at the beginning of the buffer. Returns how many bytes were taken; 0 if more are
 * needed; -1 if they are not a frame of a client. */
long websocket_decode(struct websocket_decoder *decoder, char *bytes, size_t count,
                      struct websocket_piece *ret);

/* Writes the head of a message of one frame, or of a control frame, with `count` bytes; returns the
 * head's length. */
size_t websocket_head(enum websocket_opcode opcode, size_t count,
                      char ret[WEBSOCKET_HEAD_BYTES_MAX]);
