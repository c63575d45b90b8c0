/* Several logs on one output: prefixes, colours, progress bars.
 *
 * On a terminal each log that draws a bar, or has begun a line, has one line at the bottom, updated
 * in place, below the lines of all. Elsewhere a bar's newest state is a line, once a second at
 * most, and a line that was begun is put out as it is after LOGVIEW_PARTIAL_MS: what follows
 * continues it, unless another log has written meanwhile. Where a line is broken, for that or
 * because it is too long, LOGVIEW_BREAK stands before and after the break.
 *
 * Layer: cli; pure: text goes to a buffer which the caller writes out, time comes in. Ownership:
 * init/done; streams belong to the view.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LOGVIEW_LAST_LINES = 5,
    LOGVIEW_BAR_MS = 1000,
    LOGVIEW_PARTIAL_MS = 500, /* most lines that come in parts stay whole */
    LOGVIEW_TERMINAL_PARTIAL_MS = 200,
    LOGVIEW_LABEL_BYTES = 128,
};

#define LOGVIEW_BREAK "\u2026"

struct logview_stream;

struct logview {
    struct buf *out;
    bool terminal;
    bool colour;
    bool prompts; /* somebody types at one: a line that was begun is put out at once */
    int columns;  /* of the terminal */
    int rows;
    struct logview_stream *streams;
    size_t stream_count;
    size_t bars_drawn;           /* lines of the area at the bottom of the terminal */
    struct logview_stream *open; /* not a terminal: whose unfinished line the output ends with */
};

void logview_init(struct logview *view, struct buf *out, bool terminal, bool colour);
void logview_done(struct logview *view);

/* The terminal's size, at the beginning and whenever it may have changed: bars are cut to it, and
 * those that have no room are not drawn. Sizes too small to be true are not believed. */
void logview_resize(struct logview *view, int columns, int rows);

/* label "" means no prefix. Lives as long as the view. NULL when out of memory. */
struct logview_stream *logview_add(struct logview *view, const char *label);

/* The time of the line that begins now, shown after its label: up to 31 bytes, copied. */
void logview_stamp(struct logview_stream *stream, const char *stamp);
void logview_feed(struct logview_stream *stream, const char *bytes, size_t count, int64_t now_ms);
void logview_end(struct logview_stream *stream);

/* Call a few times a second: bars that wait for their turn, lines that were begun. */
void logview_tick(struct logview *view, int64_t now_ms);

/* The output is to end with a whole line: something else is about to write there. */
void logview_break(struct logview *view);

/* A line of muster's own between the logs. */
void logview_note(struct logview *view, const char *text);

/* The last lines, oldest first, up to LOGVIEW_LAST_LINES; NULL past the end. Borrowed. */
const char *logview_last_line(const struct logview_stream *stream, size_t index);
