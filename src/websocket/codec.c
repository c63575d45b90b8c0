/* See codec.h. The layout of a frame is RFC 6455 section 5.2. */
#include "websocket/codec.h"

#include <string.h>

enum {
    FINAL = 0x80,
    RESERVED = 0x70,
    OPCODE = 0x0f,
    CONTROL = 0x08,
    MASKED = 0x80,
    LENGTH = 0x7f,
    LENGTH_16 = 126,
    LENGTH_64 = 127,
    MASK_BYTES = 4,
};

/* Returns how many bytes after the first two contain the length. */
static size_t length_bytes(unsigned char second)
{
    unsigned length = second & LENGTH;
    return length == LENGTH_64 ? 8 : length == LENGTH_16 ? 2 : 0;
}

static uint64_t read_length(const unsigned char *bytes)
{
    size_t count = length_bytes(bytes[1]);
    uint64_t length = count == 0 ? bytes[1] & LENGTH : 0;
    for (size_t i = 0; i < count; i++) {
        length = length << 8 | bytes[2 + i];
    }
    return length;
}

/* Whether a frame of this kind and length is allowed now. */
static bool is_allowed(const struct websocket_decoder *d, const unsigned char *bytes)
{
    unsigned opcode = bytes[0] & OPCODE;
    bool known = opcode == WEBSOCKET_CONTINUATION || opcode == WEBSOCKET_TEXT ||
                 opcode == WEBSOCKET_BINARY || opcode == WEBSOCKET_CLOSE ||
                 opcode == WEBSOCKET_PING || opcode == WEBSOCKET_PONG;
    if (!known || (bytes[0] & RESERVED) || !(bytes[1] & MASKED)) {
        return false;
    }
    if (opcode & CONTROL) {
        return (bytes[0] & FINAL) && (bytes[1] & LENGTH) <= WEBSOCKET_CONTROL_BYTES_MAX;
    }
    return (opcode == WEBSOCKET_CONTINUATION) == d->in_message;
}

static void unmask(struct websocket_decoder *d, char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bytes[i] = (char)((unsigned char)bytes[i] ^ d->mask[d->mask_at++ % MASK_BYTES]);
    }
}

/* Gives the bytes of the current frame that have come. Returns how many. */
static size_t give(struct websocket_decoder *d, char *bytes, size_t count,
                   struct websocket_piece *ret)
{
    size_t taken = count < d->left_bytes ? count : (size_t)d->left_bytes;
    unmask(d, bytes, taken);
    d->left_bytes -= taken;
    d->in_frame = d->left_bytes > 0;
    *ret = (struct websocket_piece){.opcode = WEBSOCKET_BINARY,
                                    .first = d->begins,
                                    .last = d->final && !d->in_frame,
                                    .bytes = bytes,
                                    .count = taken};
    d->begins = false;
    d->in_message = !ret->last;
    return taken;
}

static size_t give_control(struct websocket_decoder *d, unsigned opcode, char *bytes, size_t count,
                           struct websocket_piece *ret)
{
    unmask(d, bytes, count);
    *ret =
        (struct websocket_piece){.opcode = (enum websocket_opcode)opcode, true, true, bytes, count};
    return count;
}

long websocket_decode(struct websocket_decoder *d, char *bytes, size_t count,
                      struct websocket_piece *ret)
{
    const unsigned char *head = (const unsigned char *)bytes;
    if (d->in_frame) {
        return (long)give(d, bytes, count, ret);
    }
    if (count < 2) {
        return 0;
    }
    if (!is_allowed(d, head)) {
        return -1;
    }
    size_t head_bytes = 2 + length_bytes(head[1]) + MASK_BYTES;
    unsigned opcode = head[0] & OPCODE;
    if (count < head_bytes) {
        return 0;
    }
    uint64_t length = read_length(head);
    if (length >> 63 || ((opcode & CONTROL) && count < head_bytes + length)) {
        return length >> 63 ? -1 : 0;
    }
    memcpy(d->mask, bytes + head_bytes - MASK_BYTES, MASK_BYTES);
    d->mask_at = 0;
    char *payload = bytes + head_bytes;
    if (opcode & CONTROL) {
        return (long)(head_bytes + give_control(d, opcode, payload, (size_t)length, ret));
    }
    d->begins = opcode != WEBSOCKET_CONTINUATION || d->begins;
    d->final = head[0] & FINAL;
    d->left_bytes = length;
    return (long)(head_bytes + give(d, payload, count - head_bytes, ret));
}

size_t websocket_head(enum websocket_opcode opcode, size_t count,
                      char ret[WEBSOCKET_HEAD_BYTES_MAX])
{
    size_t bytes = count > UINT16_MAX ? 8 : count > WEBSOCKET_CONTROL_BYTES_MAX ? 2 : 0;
    ret[0] = (char)(FINAL | opcode);
    ret[1] = (char)(bytes == 8 ? LENGTH_64 : bytes == 2 ? LENGTH_16 : count);
    for (size_t i = 0; i < bytes; i++) {
        ret[2 + i] = (char)(count >> (8 * (bytes - 1 - i)));
    }
    return 2 + bytes;
}
