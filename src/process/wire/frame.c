/* See frame.h. */
#include "process/wire/frame.h"

#include <assert.h>
#include <stdint.h>

void frame_head(enum frame_kind kind, size_t count, char ret[FRAME_HEAD_BYTES])
{
    assert(count <= FRAME_BYTES_MAX);
    ret[0] = (char)kind;
    for (int i = 1; i < FRAME_HEAD_BYTES; i++) {
        ret[i] = (char)(count >> (8 * (FRAME_HEAD_BYTES - 1 - i)));
    }
}

long frame_read(const char *bytes, size_t used, struct frame *ret)
{
    if (used == 0) {
        return 0;
    }
    unsigned char kind = (unsigned char)bytes[0];
    if (kind > FRAME_RESIZE) {
        return -1;
    }
    if (used < FRAME_HEAD_BYTES) {
        return 0;
    }
    uint32_t count = 0;
    for (int i = 1; i < FRAME_HEAD_BYTES; i++) {
        count = count << 8 | (unsigned char)bytes[i];
    }
    if (count > FRAME_BYTES_MAX) {
        return -1;
    }
    if (used < FRAME_HEAD_BYTES + count) {
        return 0;
    }
    *ret = (struct frame){(enum frame_kind)kind, bytes + FRAME_HEAD_BYTES, count};
    return (long)(FRAME_HEAD_BYTES + count);
}
