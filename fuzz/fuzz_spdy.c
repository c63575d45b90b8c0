/* The frames of a SPDY/3.1 client: they are the same in pieces of any size, and they refer only to
 * bytes that were read. */
#include "core/hash.h"
#include "invariant.h"
#include "pieces.h"
#include "spdy/decoder.h"

#include <string.h>

struct heard {
    uint64_t sum; /* of events, headers and bytes, in their order */
    size_t events;
    bool refused;
};

static void add(struct heard *heard, const void *bytes, size_t count)
{
    heard->sum = hash_bytes(heard->sum, bytes, count);
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

static struct heard read_all(struct pieces p)
{
    struct spdy_decoder *decoder = spdy_decoder_new();
    struct heard heard = {.sum = HASH_START};
    for (size_t at = 0; at < p.size && !heard.refused;) {
        size_t count = pieces_next(&p, at);
        const char *bytes = p.bytes + at;
        struct spdy_event event;
        long taken = spdy_decode(decoder, bytes, count, &event);
        heard.refused = taken < 0;
        invariant(taken < 0 || (taken > 0 && (size_t)taken <= count), "bytes are taken", "");
        invariant(taken < 0 || !event.count ||
                      (event.bytes >= bytes && event.bytes + event.count <= bytes + taken),
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
    struct pieces whole, torn;
    if (!pieces_read(data, size, &whole, &torn)) {
        return 0;
    }
    struct heard one = read_all(whole), other = read_all(torn);
    invariant(one.refused == other.refused && one.events == other.events && one.sum == other.sum,
              "what comes in pieces is the same", "");
    return 0;
}
