/* What a client sends over a WebSocket: frames (websocket/codec.h).
 *
 * The first byte says in how large pieces the rest comes: it must not matter. */
#include "invariant.h"
#include "websocket/codec.h"

#include <string.h>

enum { MOST = 1 << 16 };

struct heard {
    uint64_t sum; /* of opcodes and bytes, in their order */
    size_t bytes, messages;
    bool refused;
};

static void hear(struct heard *heard, const struct websocket_piece *piece)
{
    for (size_t i = 0; i < piece->count; i++) {
        heard->sum = (heard->sum ^ (unsigned char)piece->bytes[i]) * 0x100000001b3u;
    }
    if (piece->last) {
        heard->sum = (heard->sum ^ (uint64_t)piece->opcode) * 0x100000001b3u;
    }
    heard->bytes += piece->count;
    heard->messages += piece->last;
}

static struct heard read_all(const uint8_t *data, size_t size, size_t step)
{
    static char held[MOST];
    struct websocket_decoder decoder = {0};
    struct heard heard = {.sum = 0xcbf29ce484222325u};
    size_t used = 0;
    for (size_t at = 0; at < size && !heard.refused; at += step) {
        size_t count = size - at < step ? size - at : step;
        struct websocket_piece piece;
        memcpy(held + used, data + at, count);
        used += count;
        for (long taken; (taken = websocket_decode(&decoder, held, used, &piece)) != 0;) {
            if (taken < 0) {
                heard.refused = true;
                break;
            }
            invariant((size_t)taken <= used && piece.bytes >= held &&
                          piece.bytes + piece.count <= held + taken,
                      "a piece lies in what was taken", "");
            hear(&heard, &piece);
            used -= (size_t)taken;
            memmove(held, held + taken, used);
        }
        invariant(heard.refused || used <= WEBSOCKET_WHOLE_CONTROL_BYTES,
                  "what waits for more is short", "");
    }
    return heard;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > MOST) {
        return 0;
    }
    size_t step = data[0] ? data[0] : 1;
    struct heard whole = read_all(data + 1, size - 1, size - 1);
    struct heard pieces = read_all(data + 1, size - 1, step);
    invariant(whole.refused == pieces.refused && whole.messages == pieces.messages &&
                  whole.bytes == pieces.bytes && whole.sum == pieces.sum,
              "what comes in pieces is the same", "");
    return 0;
}
