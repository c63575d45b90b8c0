/* The output of ranks, their memory and their stacks: written by programs of users, read by the
 * command line and the supervisor.
 *
 * The first byte says what the rest is: a log on a screen, logs to be merged, lines with
 * checkpoints or with text that has a hint, Python's stacks, or a flight record. An input that
 * begins with '[' is a report of stacks. */
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/file.h"
#include "cli/follow/hints.h"
#include "cli/log/log_merge.h"
#include "cli/log/log_view.h"
#include "cli/result/checkpoint.h"
#include "core/flight.h"
#include "core/hash.h"
#include "invariant.h"
#include "process/stack/collectives.h"
#include "process/stack/report_text.h"
#include "process/stack/text.h"

enum { MOST = 1 << 16, OUT_BYTES_MAX = 64 << 20, SOURCES = 3, NAME_BYTES = 128 };

/* The rest of the input. */
struct rest {
    const char *bytes;
    size_t size;
};

static unsigned take_byte(struct rest *rest)
{
    if (rest->size == 0) {
        return 0;
    }
    rest->size--;
    return (unsigned char)*rest->bytes++;
}

static struct rest take(struct rest *rest, size_t most)
{
    struct rest taken = {rest->bytes, most < rest->size ? most : rest->size};
    rest->bytes += taken.size;
    rest->size -= taken.size;
    return taken;
}

/* ---- a screen ---- */

static void check_last_lines(const struct log_view_stream *stream)
{
    const char *line;
    for (size_t i = 0; (line = log_view_last_line(stream, i)); i++) {
        invariant(i < LOG_VIEW_LAST_LINES, "no more lines are kept", "");
        for (const char *at = line; *at; at++) {
            invariant((unsigned char)*at >= ' ' && *at != 0x7f, "a kept line is text", line);
        }
    }
}

/* Shows logs. Each step is a byte, which chooses a log and an event of it. */
static void show_logs(struct rest rest)
{
    struct buf out;
    struct log_view view;
    int64_t now_ms = 1;
    unsigned options = take_byte(&rest);
    buf_init(&out, OUT_BYTES_MAX);
    log_view_init(&view, &out, options & 1, options & 2);
    view.prompts = options & 4;
    struct log_view_stream *streams[] = {log_view_add(&view, options & 8 ? "" : "rank 0"),
                                         log_view_add(&view, "rank 1")};
    invariant(streams[0] && streams[1], "there is memory", "");
    while (rest.size > 0) {
        unsigned step = take_byte(&rest);
        struct log_view_stream *stream = streams[step & 1];
        now_ms += step >> 4;
        switch (step >> 1 & 7) {
        case 0: log_view_tick(&view, now_ms += 500); break;
        case 1: log_view_break(&view); break;
        case 2: log_view_note(&view, "a note"); break;
        case 3: log_view_resize(&view, (int)take_byte(&rest) - 8, (int)take_byte(&rest) - 8); break;
        case 4: log_view_end(stream); break;
        case 5: log_view_stamp(stream, "2026-01-01T00:00:00.000000000Z "); break;
        default: {
            struct rest piece = take(&rest, take_byte(&rest));
            log_view_feed(stream, piece.bytes, piece.size, now_ms);
        }
        }
    }
    for (int i = 0; i < 2; i++) {
        log_view_end(streams[i]);
        check_last_lines(streams[i]);
    }
    invariant(!buf_failed(&out), "what is shown is bounded by what came", "");
    log_view_done(&view);
    buf_done(&out);
}

/* ---- a merge ---- */

/* Hashes of the bytes of one log, in their order. */
struct sum {
    uint64_t in, out;
};

static void take_pieces(struct log_merge *merge, int64_t now_ms)
{
    struct log_merge_piece piece;
    while (log_merge_take(merge, now_ms, &piece)) {
        struct sum *sum = piece.owner;
        invariant(piece.bytes || piece.count == 0, "a piece has its bytes", "");
        sum->out = hash_bytes(sum->out, piece.bytes, piece.count);
    }
}

static void merge_logs(struct rest rest)
{
    struct sum sums[SOURCES] = {0};
    struct log_merge_source *sources[SOURCES];
    int64_t now_ms = 1;
    struct log_merge *merge = log_merge_new((int64_t)take_byte(&rest) - 1);
    for (int i = 0; i < SOURCES; i++) {
        sources[i] = log_merge_add(merge, &sums[i]);
        log_merge_begin(sources[i]);
    }
    while (rest.size > 0) {
        unsigned step = take_byte(&rest);
        int which = (int)(step % SOURCES);
        int64_t unix_ms = (int64_t)take_byte(&rest) - 3;
        struct rest piece = take(&rest, step >> 3);
        now_ms += step & 15;
        sums[which].in = hash_bytes(sums[which].in, piece.bytes, piece.size);
        invariant(log_merge_feed(sources[which], unix_ms, piece.bytes, piece.size, now_ms),
                  "there is memory", "");
        if (step & 4) {
            log_merge_watermark(sources[which], unix_ms);
        }
        take_pieces(merge, now_ms);
    }
    for (int i = 0; i < SOURCES; i++) {
        log_merge_end(sources[i]);
    }
    take_pieces(merge, now_ms);
    for (int i = 0; i < SOURCES; i++) {
        invariant(sums[i].in == sums[i].out, "each log comes whole and in its order", "");
    }
    log_merge_free(merge);
}

/* ---- text ---- */

static void find_checkpoints(const char *text, size_t size)
{
    char path[CHECKPOINT_PATH_BYTES];
    const char *at = text, *end = text + size;
    for (const char *before = at; checkpoint_next(&at, end, path); before = at) {
        invariant(at > before && at <= end, "the next one is looked for behind it", path);
        invariant(checkpoint_is_name(path), "it has such a name", path);
    }
}

static void find_hints(const char *text)
{
    char hint[NAME_BYTES];
    (void)hint_of_line(text, (struct hint_job){.private = true, .elastic = true});
    (void)hint_of_line(text, (struct hint_job){0});
    hint_of_waiting(text, "default", hint, sizeof hint);
    invariant(memchr(hint, '\0', sizeof hint), "a hint is text", "");
}

static void read_stacks(char *text)
{
    char where[NAME_BYTES];
    size_t before = strlen(text);
    if (stack_text_where(text, where, sizeof where)) {
        invariant(memchr(where, '\0', sizeof where) && *where, "a place is text", "");
    }
    stack_text_drop_asked(text);
    invariant(strlen(text) <= before, "nothing is added", "");
}

/* Reads a flight record, which may contain any bytes, because its writer may still change it. */
static void read_flight(struct rest rest)
{
    struct flight flight;
    uint64_t shape = 0, count = 0;
    bool receives;
    int32_t peer, tag;
    char name[NAME_BYTES];
    memset(&flight, 0, sizeof flight);
    memcpy(&flight, rest.bytes, rest.size < sizeof flight ? rest.size : sizeof flight);
    uint64_t pending = flight_pending(&flight, &shape, &count);
    (void)flight_has_ended(&flight, pending);
    flight_name(shape, count, name, sizeof name);
    uint64_t newest = flight_newest(&flight, &shape, &count);
    (void)flight_read(&flight, newest, &shape, &count);
    flight_name(shape, count, name, sizeof name);
    invariant(memchr(name, '\0', sizeof name), "a call's name is text", "");
    (void)flight_waiting(&flight, &receives, &peer, &tag);
}

static void read_report(const char *text, size_t size)
{
    muster_auto(doc) json_t *report = NULL;
    if (doc_parse(text, size, &report, NULL) < 0) {
        return;
    }
    muster_auto(doc) json_t *described = collectives_describe(report);
    invariant(json_is_array(described), "a list is given", "");
    struct buf out;
    size_t i, p;
    json_t *attempt, *process;
    buf_init(&out, OUT_BYTES_MAX);
    json_array_foreach (report, i, attempt) {
        report_put_state(&out, attempt);
        json_array_foreach (json_object_get(attempt, "processes"), p, process) {
            report_put_process(&out, "", process);
        }
    }
    for (long rank = 0; rank < 3; rank++) {
        free(collectives_of_rank(report, rank));
    }
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > MOST) {
        return 0;
    }
    struct rest rest = {(const char *)data + 1, size - 1};
    muster_auto(free) char *text = strndup(rest.bytes, rest.size);
    if (data[0] == '[') {
        read_report((const char *)data, size);
        return 0;
    }
    switch (data[0] % 6) {
    case 0: show_logs(rest); break;
    case 1: merge_logs(rest); break;
    case 2: find_checkpoints(text, strlen(text)); break;
    case 3: find_hints(text); break;
    case 4: read_stacks(text); break;
    case 5: read_flight(rest); break;
    }
    return 0;
}
