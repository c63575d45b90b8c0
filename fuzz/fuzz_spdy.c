/* The frames of a SPDY/3.1 client: they are the same in whatever pieces they come, and what they
 * say lies within what was read.
 *
 * Input: how many bytes come at once, then the bytes. */
#include "invariant.h"

#include "spdy/decoder.h"

#include <string.h>

enum { MOST = 1 << 16 };

struct heard {
    uint64_t sum; /* of events, headers and bytes, in their order */
    size_t events;
    bool refused;
};

static void add(struct heard *heard, const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        heard->sum = (heard->sum ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
    }
}

static void hear(struct heard *heard, const struct spdy_event *event)
{
    if (event->kind == SPDY_NOTHING ||
        (event->kind == SPDY_DATA && !event->count && !event->last)) {
        return;
    }
    add(heard, event->bytes, event->count);
    if (event->kind == SPDY_DATA && !event->last) {
        return; /* a piece of a frame */
    }
    add(heard, &event->kind, sizeof event->kind);
    add(heard, &event->stream, sizeof event->stream);
    for (size_t i = 0; event->headers && i < event->headers->count; i++) {
        add(heard, event->headers->names[i], strlen(event->headers->names[i]) + 1);
        add(heard, event->headers->values[i], strlen(event->headers->values[i]) + 1);
    }
    heard->events++;
}

static struct heard read_all(const char *data, size_t size, size_t step)
{
    struct spdy_decoder *decoder = spdy_decoder_new();
    struct heard heard = {.sum = 0xcbf29ce484222325u};
    for (size_t at = 0; at < size && !heard.refused;) {
        size_t count = size - at < step ? size - at : step;
        struct spdy_event event;
        long taken = spdy_decode(decoder, data + at, count, &event);
        heard.refused = taken < 0;
        invariant(taken < 0 || (taken > 0 && (size_t)taken <= count), "bytes are taken", "");
        invariant(taken < 0 || !event.count ||
                      (event.bytes >= data + at && event.bytes + event.count <= data + at + taken),
                  "data lie in what was taken", "");
        if (!heard.refused) {
            hear(&heard, &event);
            at += (size_t)taken;
        }
    }
    spdy_decoder_free(decoder);
    return heard;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > MOST) {
        return 0;
    }
    size_t step = data[0] ? data[0] : 1;
    struct heard whole = read_all((const char *)data + 1, size - 1, size - 1);
    struct heard pieces = read_all((const char *)data + 1, size - 1, step);
    invariant(whole.refused == pieces.refused && whole.events == pieces.events &&
                  whole.sum == pieces.sum,
              "what comes in pieces is the same", "");
    return 0;
}
