/* Frames that a client sends over a WebSocket (websocket/codec.h), in pieces of any size. */
#include "core/hash.h"
#include "invariant.h"
#include "pieces.h"
#include "websocket/codec.h"

#include <string.h>

struct heard {
    uint64_t sum; /* of opcodes and bytes, in their order */
    size_t bytes, messages;
    bool refused;
};

static void hear(struct heard *heard, const struct websocket_piece *piece)
{
    heard->sum = hash_bytes(heard->sum, piece->bytes, piece->count);
    if (piece->last) {
        heard->sum = hash_bytes(heard->sum, &piece->opcode, sizeof piece->opcode);
    }
    heard->bytes += piece->count;
    heard->messages += piece->last;
}

static struct heard read_all(struct pieces p)
{
    static char held[PIECES_BYTES_MAX];
    struct websocket_decoder decoder = {0};
    struct heard heard = {.sum = HASH_START};
    size_t used = 0;
    for (size_t at = 0, count; at < p.size && !heard.refused; at += count) {
        struct websocket_piece piece;
        count = pieces_next(&p, at);
        memcpy(held + used, p.bytes + at, count);
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
    struct pieces whole, torn;
    if (!pieces_read(data, size, &whole, &torn)) {
        return 0;
    }
    struct heard one = read_all(whole), other = read_all(torn);
    invariant(one.refused == other.refused && one.messages == other.messages &&
                  one.bytes == other.bytes && one.sum == other.sum,
              "what comes in pieces is the same", "");
    return 0;
}
