/* The frames of an exec session: what its client and the process in the container say to each other
 * over one stream, whatever carries it.
 *
 *     kind (1 byte) | length (4 bytes, big-endian) | bytes
 *
 * The kinds are the channel numbers of Kubernetes' remote command protocol (v4.channel.k8s.io), so
 * that a WebSocket's messages are these frames without the length.
 *
 * Layer: services; pure.
 */
#pragma once

#include <stddef.h>

enum frame_kind {
    FRAME_STDIN,  /* to the command; an empty frame is the end of its input */
    FRAME_STDOUT, /* from the command */
    FRAME_STDERR,
    FRAME_END, /* {"code": 0, "message": ""}: it ended, or could not be started; the last frame */
    FRAME_RESIZE, /* {"rows": 24, "columns": 80} */
};

enum { FRAME_HEAD_BYTES = 5, FRAME_BYTES_MAX = 32 << 10 };

struct frame {
    enum frame_kind kind;
    const char *bytes; /* in the buffer that was read */
    size_t count;
};

/* Writes the head of a frame of `count` (at most FRAME_BYTES_MAX) bytes. */
void frame_head(enum frame_kind kind, size_t count, char ret[FRAME_HEAD_BYTES]);

/* Reads the frame at the beginning of a buffer. Returns its whole length; 0: more bytes are needed;
 * -1: it is not a frame. */
long frame_read(const char *bytes, size_t used, struct frame *ret);
