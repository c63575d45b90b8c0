/* See decoder.h. The layout of frames: draft-mbelshe-httpbis-spdy-00, section 2.2. */
#include "spdy/decoder.h"

#include <stdlib.h>
#include <string.h>

enum {
    HEAD_BYTES = 8,
    CONTROL_BYTES_MAX = 8192, /* a longer header block exceeds SPDY_HEADER_BYTES_MAX */
    VERSION = 3,
    CONTROL = 0x80,
    FLAG_FIN = 1,
    STREAM_MASK = 0x7fffffff,
};

enum type {
    TYPE_SYN_STREAM = 1,
    TYPE_SYN_REPLY = 2,
    TYPE_RST_STREAM = 3,
    TYPE_SETTINGS = 4,
    TYPE_PING = 6,
    TYPE_GOAWAY = 7,
    TYPE_HEADERS = 8,
    TYPE_WINDOW_UPDATE = 9,
};

enum state {
    IN_HEAD,    /* in the head of a frame, or between two frames */
    IN_CONTROL, /* a control frame is gathered */
    IN_DATA,    /* the content of a data frame is passed on */
};

struct spdy_decoder {
    enum state state;
    struct spdy_inflater *inflater;
    struct spdy_headers headers;
    uint32_t stream; /* stream of the data frame */
    bool last;       /* it is the last frame of the stream */
    size_t left;     /* bytes of the data frame that are still to come */
    size_t used;     /* bytes in held */
    unsigned char held[HEAD_BYTES + CONTROL_BYTES_MAX];
};

struct spdy_decoder *spdy_decoder_new(void)
{
    struct spdy_decoder *decoder = calloc(1, sizeof *decoder);
    if (decoder) {
        decoder->inflater = spdy_inflater_new();
    }
    return decoder && !decoder->inflater ? spdy_decoder_free(decoder) : decoder;
}

struct spdy_decoder *spdy_decoder_free(struct spdy_decoder *decoder)
{
    if (decoder) {
        spdy_inflater_free(decoder->inflater);
        free(decoder);
    }
    return NULL;
}

static uint32_t number(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static size_t length_of(const unsigned char *head)
{
    return number(head + 4) & 0xffffff;
}

/* Copies bytes to `held` until it has `wanted` bytes, or no more have come. Returns how many were
 * taken. */
static size_t gather(struct spdy_decoder *d, const char *bytes, size_t count, size_t wanted)
{
    size_t missing = wanted - d->used;
    size_t taken = count < missing ? count : missing;
    memcpy(d->held + d->used, bytes, taken);
    d->used += taken;
    return taken;
}

/* ---- control frames ---- */

/* Returns how many bytes a frame of this type has before its header block or list. */
static size_t least_bytes(enum type type)
{
    switch (type) {
    case TYPE_SYN_STREAM: return 10;
    case TYPE_RST_STREAM:
    case TYPE_GOAWAY:
    case TYPE_WINDOW_UPDATE: return 8;
    case TYPE_SYN_REPLY:
    case TYPE_SETTINGS:
    case TYPE_PING:
    case TYPE_HEADERS: return 4;
    }
    return 0;
}

/* Reads every header block, also of frames that are ignored: later blocks refer to earlier ones. */
static bool take_headers(struct spdy_decoder *d, enum type type)
{
    size_t before = HEAD_BYTES + least_bytes(type);
    return spdy_inflate(d->inflater, d->held + before, d->used - before, &d->headers);
}

/* Returns false if the frame is not valid. */
static bool take_control(struct spdy_decoder *d, struct spdy_event *ret)
{
    const unsigned char *body = d->held + HEAD_BYTES;
    enum type type = (enum type)(d->held[2] << 8 | d->held[3]);
    if (d->used - HEAD_BYTES < least_bytes(type)) {
        return false;
    }
    switch (type) {
    case TYPE_SYN_STREAM:
        *ret = (struct spdy_event){.kind = SPDY_OPEN,
                                   .stream = number(body) & STREAM_MASK,
                                   .last = d->held[4] & FLAG_FIN,
                                   .headers = &d->headers};
        return take_headers(d, type);
    case TYPE_SYN_REPLY:
    case TYPE_HEADERS: return take_headers(d, type);
    case TYPE_RST_STREAM:
        *ret = (struct spdy_event){.kind = SPDY_RESET, .stream = number(body) & STREAM_MASK};
        return true;
    case TYPE_PING:
        *ret = (struct spdy_event){.kind = SPDY_PING, .stream = number(body)};
        return true;
    case TYPE_GOAWAY: *ret = (struct spdy_event){.kind = SPDY_GOAWAY}; return true;
    case TYPE_SETTINGS:
    case TYPE_WINDOW_UPDATE: return true;
    }
    return true; /* a frame of an extension */
}

/* ---- frames ---- */

static void give_data(struct spdy_decoder *d, const char *bytes, size_t count,
                      struct spdy_event *ret)
{
    d->left -= count;
    if (d->left == 0) {
        d->state = IN_HEAD;
    }
    *ret = (struct spdy_event){.kind = SPDY_DATA,
                               .stream = d->stream,
                               .last = d->last && d->left == 0,
                               .bytes = bytes,
                               .count = count};
}

/* Begins the frame whose head is complete. Returns false if it is not a frame of SPDY/3.1, or is
 * too long. */
static bool begin(struct spdy_decoder *d, struct spdy_event *ret)
{
    if (d->held[0] & CONTROL) {
        unsigned version = (unsigned)(d->held[0] & 0x7f) << 8 | d->held[1];
        d->state = IN_CONTROL;
        return version == VERSION && length_of(d->held) <= CONTROL_BYTES_MAX;
    }
    d->stream = number(d->held);
    d->last = d->held[4] & FLAG_FIN;
    d->left = length_of(d->held);
    d->state = IN_DATA;
    d->used = 0;
    if (d->left == 0) {
        give_data(d, "", 0, ret);
    }
    return true;
}

/* Takes the control frame if it is complete. Returns false if it is not valid. */
static bool end_control(struct spdy_decoder *d, struct spdy_event *ret)
{
    if (d->used < HEAD_BYTES + length_of(d->held)) {
        return true;
    }
    bool good = take_control(d, ret);
    d->state = IN_HEAD;
    d->used = 0;
    return good;
}

long spdy_decode(struct spdy_decoder *d, const char *bytes, size_t count, struct spdy_event *ret)
{
    size_t taken = 0;
    *ret = (struct spdy_event){.kind = SPDY_NOTHING};
    if (d->state == IN_DATA) {
        taken = count < d->left ? count : d->left;
        give_data(d, bytes, taken, ret);
        return (long)taken;
    }
    if (d->state == IN_HEAD) {
        taken = gather(d, bytes, count, HEAD_BYTES);
        if (d->used == HEAD_BYTES && !begin(d, ret)) {
            return -1;
        }
    }
    if (d->state == IN_CONTROL) {
        taken += gather(d, bytes + taken, count - taken, HEAD_BYTES + length_of(d->held));
        return end_control(d, ret) ? (long)taken : -1;
    }
    return (long)taken;
}
