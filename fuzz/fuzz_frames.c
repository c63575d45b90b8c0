/* Frames as they come over a connection: of an exec session (process/frame.h), and of a followed
 * log (cli/frames.h).
 *
 * The first byte says in how large pieces the rest comes: it must not matter. */
#include "cli/log/frames.h"
#include "invariant.h"
#include "process/wire/frame.h"

enum { MOST = 1 << 16 };

/* Where a reader that gets all at once, and one that gets pieces, are afterwards. */
struct session {
    uint64_t sum; /* of kinds, lengths and bytes, in their order */
    size_t frames;
    bool refused;
};

static uint64_t add(uint64_t sum, const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sum = (sum ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3u;
    }
    return sum;
}

/* What came so far lies in `held`, as with a connection that is read into a buffer. */
static struct session read_session(const uint8_t *data, size_t size, size_t step)
{
    static char held[MOST];
    struct session s = {.sum = 0xcbf29ce484222325u};
    size_t used = 0;
    for (size_t at = 0; at < size && !s.refused; at += step) {
        size_t count = size - at < step ? size - at : step;
        memcpy(held + used, data + at, count);
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
            s.sum = add(add(s.sum, head, sizeof head), frame.bytes, frame.count);
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
    for (size_t i = 0; i < count; i++) { /* each byte has its place, however it came */
        uint64_t place = offset + i;
        log->sum =
            add(add(add(log->sum, &place, sizeof place), &unix_ms, sizeof unix_ms), bytes + i, 1);
    }
    log->bytes += count;
}

static void on_gap(void *context, uint64_t bytes)
{
    struct log *log = context;
    log->sum = add(add(log->sum, "g", 1), &bytes, sizeof bytes);
}

static void on_watermark(void *context, int64_t unix_ms)
{
    struct log *log = context;
    log->sum = add(add(log->sum, "w", 1), &unix_ms, sizeof unix_ms);
}

static struct log read_log(const uint8_t *data, size_t size, size_t step, bool *ret_broken)
{
    struct frames frames = {0};
    struct log log = {.sum = 0xcbf29ce484222325u};
    const struct frames_sink sink = {on_data, on_gap, on_watermark, &log};
    for (size_t at = 0; at < size; at += step) {
        frames_feed(&frames, (const char *)data + at, size - at < step ? size - at : step, &sink);
    }
    invariant(log.bytes <= size, "no more is given than came", "");
    *ret_broken = frames.broken;
    return log;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > MOST) {
        return 0;
    }
    size_t step = data[0] ? data[0] : 1;
    data++;
    size--;
    struct session whole = read_session(data, size, size ? size : 1);
    struct session pieces = read_session(data, size, step);
    invariant(whole.refused == pieces.refused && whole.frames == pieces.frames &&
                  whole.sum == pieces.sum,
              "a session in pieces is the session", "");
    bool whole_broken, pieces_broken;
    struct log all = read_log(data, size, size ? size : 1, &whole_broken);
    struct log parts = read_log(data, size, step, &pieces_broken);
    invariant(all.sum == parts.sum && all.bytes == parts.bytes && whole_broken == pieces_broken,
              "a log in pieces is the log", "");
    return 0;
}
