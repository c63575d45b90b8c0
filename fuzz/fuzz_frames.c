/* Frames as they come over a connection, in pieces of any size: those of an exec session
 * (process/frame.h), and those of a followed log (cli/log/frames.h). */
#include "cli/log/frames.h"
#include "core/hash.h"
#include "invariant.h"
#include "pieces.h"
#include "process/wire/frame.h"

/* The state of a reader at the end: equal for all bytes at once and for pieces. */
struct session {
    uint64_t sum; /* of kinds, lengths and bytes, in their order */
    size_t frames;
    bool refused;
};

/* Reads a session. Bytes that are not yet a frame are kept in `held`, like the buffer of a
 * connection. */
static struct session read_session(struct pieces p)
{
    static char held[PIECES_BYTES_MAX];
    struct session s = {.sum = HASH_START};
    size_t used = 0;
    for (size_t at = 0, count; at < p.size && !s.refused; at += count) {
        count = pieces_next(&p, at);
        memcpy(held + used, p.bytes + at, count);
        used += count;
        struct frame frame;
        for (long length; (length = frame_read(held, used, &frame)) != 0;) {
            if (length < 0) {
                s.refused = true;
                break;
            }
            invariant((size_t)length == FRAME_HEAD_BYTES + frame.count && (size_t)length <= used,
                      "a frame lies in the buffer", "");
            invariant(frame.kind <= FRAME_RESIZE && frame.count <= FRAME_BYTES_MAX &&
                          frame.bytes == held + FRAME_HEAD_BYTES,
                      "a frame is one of ours", "");
            char head[FRAME_HEAD_BYTES];
            frame_head(frame.kind, frame.count, head);
            invariant(memcmp(head, held, sizeof head) == 0, "a head is written as it was read", "");
            s.sum = hash_bytes(hash_bytes(s.sum, head, sizeof head), frame.bytes, frame.count);
            s.frames++;
            used -= (size_t)length;
            memmove(held, held + length, used);
        }
    }
    return s;
}

/* ---- a log ---- */

struct log {
    uint64_t sum;
    size_t bytes;
};

static void on_data(void *context, uint64_t offset, int64_t unix_ms, const char *bytes,
                    size_t count)
{
    struct log *log = context;
    for (size_t i = 0; i < count;
         i++) { /* each byte has the same place in any division into pieces */
        uint64_t place = offset + i;
        log->sum = hash_bytes(log->sum, &place, sizeof place);
        log->sum = hash_bytes(log->sum, &unix_ms, sizeof unix_ms);
        log->sum = hash_bytes(log->sum, bytes + i, 1);
    }
    log->bytes += count;
}

static void on_gap(void *context, uint64_t bytes)
{
    struct log *log = context;
    log->sum = hash_bytes(hash_text(log->sum, "g"), &bytes, sizeof bytes);
}

static void on_watermark(void *context, int64_t unix_ms)
{
    struct log *log = context;
    log->sum = hash_bytes(hash_text(log->sum, "w"), &unix_ms, sizeof unix_ms);
}

static struct log read_log(struct pieces p, bool *ret_broken)
{
    struct frames frames = {0};
    struct log log = {.sum = HASH_START};
    const struct frames_sink sink = {on_data, on_gap, on_watermark, &log};
    for (size_t at = 0, count; at < p.size; at += count) {
        count = pieces_next(&p, at);
        frames_feed(&frames, p.bytes + at, count, &sink);
    }
    invariant(log.bytes <= p.size, "no more is given than came", "");
    *ret_broken = frames.broken;
    return log;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pieces whole, torn;
    if (!pieces_read(data, size, &whole, &torn)) {
        return 0;
    }
    struct session one = read_session(whole), other = read_session(torn);
    invariant(one.refused == other.refused && one.frames == other.frames && one.sum == other.sum,
              "a session in pieces is the session", "");
    bool all_broken, parts_broken;
    struct log all = read_log(whole, &all_broken), parts = read_log(torn, &parts_broken);
    invariant(all.sum == parts.sum && all.bytes == parts.bytes && all_broken == parts_broken,
              "a log in pieces is the log", "");
    return 0;
}
