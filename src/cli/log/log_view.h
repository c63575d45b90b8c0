/* Shows several logs on one output: prefixes, colours, progress bars.
 *
 * On a terminal each log that draws a bar, or has begun a line, has one line at the bottom, below
 * the lines of all logs, which is updated in place. On other outputs the newest state of a bar is
 * printed as a line, once a second at most, and an unfinished line is printed as it is after
 * LOG_VIEW_PARTIAL_MS: the next text continues it, unless another log has written meanwhile. If a
 * line is broken, for this reason or because it is too long, LOG_VIEW_BREAK is printed before and
 * after the break.
 *
 * Layer: cli; pure: text is added to a buffer which the caller writes out, the time is an argument.
 * Ownership: init/done; streams belong to the view.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LOG_VIEW_LAST_LINES = 5,
    LOG_VIEW_BAR_MS = 1000,
    LOG_VIEW_PARTIAL_MS = 500, /* most lines that come in parts stay whole */
    LOG_VIEW_TERMINAL_PARTIAL_MS = 200,
    LOG_VIEW_LABEL_BYTES = 128,
};

#define LOG_VIEW_BREAK "\u2026"

struct log_view_stream;

struct log_view {
    struct buf *out;
    bool terminal;
    bool colour;
    bool prompts; /* a user types at a prompt: an unfinished line is put out at once */
    int columns;  /* of the terminal */
    int rows;
    struct log_view_stream *streams;
    size_t stream_count;
    size_t bars_drawn;            /* lines of the area at the bottom of the terminal */
    struct log_view_stream *open; /* not on a terminal: its unfinished line ends the output */
};

void log_view_init(struct log_view *view, struct buf *out, bool terminal, bool colour);
void log_view_done(struct log_view *view);

/* Sets the terminal's size, at the beginning and whenever it may have changed: bars are cut to it,
 * and bars that have no room are not drawn. Sizes that are too small to be true are ignored. */
void log_view_resize(struct log_view *view, int columns, int rows);

/* Adds a stream, which lives as long as the view. A label of "" means no prefix. NULL when out of
 * memory. */
struct log_view_stream *log_view_add(struct log_view *view, const char *label);

/* Sets the time of the line that begins now, which is shown after its label: up to 31 bytes,
 * copied. */
void log_view_stamp(struct log_view_stream *stream, const char *stamp);
void log_view_feed(struct log_view_stream *stream, const char *bytes, size_t count, int64_t now_ms);
void log_view_end(struct log_view_stream *stream);

/* Puts out bars that wait for their turn, and unfinished lines. Call it a few times a second. */
void log_view_tick(struct log_view *view, int64_t now_ms);

/* Makes the output end with a whole line, because something else is about to write there. */
void log_view_break(struct log_view *view);

/* Puts a line of muster's own between the logs. */
void log_view_note(struct log_view *view, const char *text);

/* The last lines, oldest first, up to LOG_VIEW_LAST_LINES; NULL past the end. Borrowed. */
const char *log_view_last_line(const struct log_view_stream *stream, size_t index);
