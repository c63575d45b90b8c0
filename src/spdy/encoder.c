/* See encoder.h. The layout of frames: draft-mbelshe-httpbis-spdy-00, section 2.2; of stored
 * blocks, RFC 1950 and RFC 1951 section 3.2.4. */
#include "spdy/encoder.h"

#include <assert.h>
#include <string.h>

enum type { TYPE_SYN_REPLY = 2, TYPE_RST_STREAM = 3, TYPE_PING = 6, TYPE_WINDOW_UPDATE = 9 };

enum { VERSION = 3, FLAG_FIN = 1, DATA_BYTES_MAX = 0xffffff };

static void put_number(char *into, uint32_t value)
{
    for (int i = 0; i < 4; i++) {
        into[i] = (char)(value >> (24 - 8 * i));
    }
}

static size_t put_control(enum type type, const uint32_t *numbers, size_t count, char *ret)
{
    put_number(ret, 0x80000000u | VERSION << 16 | (uint32_t)type);
    put_number(ret + 4, (uint32_t)(4 * count));
    for (size_t i = 0; i < count; i++) {
        put_number(ret + SPDY_HEAD_BYTES + 4 * i, numbers[i]);
    }
    return SPDY_HEAD_BYTES + 4 * count;
}

size_t spdy_reply(struct spdy_encoder *encoder, uint32_t stream, char ret[SPDY_FRAME_BYTES_MAX])
{
    static const char zlib_head[] = {0x78, 0x01};
    /* A stored block with the number of headers, and an empty one, at which readers that look ahead
     * (Go's) stop. */
    static const unsigned char no_headers[] = {0, 4, 0, 0xfb, 0xff, 0,    0,
                                               0, 0, 0, 0,    0,    0xff, 0xff};
    size_t used = put_control(TYPE_SYN_REPLY, &stream, 1, ret);
    if (!encoder->began) {
        memcpy(ret + used, zlib_head, sizeof zlib_head);
        used += sizeof zlib_head;
    }
    encoder->began = true;
    memcpy(ret + used, no_headers, sizeof no_headers);
    used += sizeof no_headers;
    put_number(ret + 4, (uint32_t)(used - SPDY_HEAD_BYTES));
    return used;
}

size_t spdy_reset(uint32_t stream, enum spdy_status status, char ret[SPDY_FRAME_BYTES_MAX])
{
    const uint32_t numbers[] = {stream, (uint32_t)status};
    return put_control(TYPE_RST_STREAM, numbers, 2, ret);
}

size_t spdy_ping(uint32_t id, char ret[SPDY_FRAME_BYTES_MAX])
{
    return put_control(TYPE_PING, &id, 1, ret);
}

size_t spdy_window(uint32_t stream, uint32_t count, char ret[SPDY_FRAME_BYTES_MAX])
{
    const uint32_t numbers[] = {stream, count};
    return put_control(TYPE_WINDOW_UPDATE, numbers, 2, ret);
}

size_t spdy_data_head(uint32_t stream, size_t count, bool last, char ret[SPDY_HEAD_BYTES])
{
    assert(count <= DATA_BYTES_MAX);
    put_number(ret, stream);
    put_number(ret + 4, (uint32_t)count);
    ret[4] = last ? FLAG_FIN : 0;
    return SPDY_HEAD_BYTES;
}
