/* See log_view.h. */
#include "cli/log/log_view.h"

#include "base/text.h"
#include "cli/log/prefixer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum { BAR_BYTES = 1024, KEPT_LINE_BYTES = 400, TIMESTAMP_BYTES = 32 };

struct log_view_stream {
    struct log_view *view;
    char label[LOG_VIEW_LABEL_BYTES];
    char stamp[TIMESTAMP_BYTES]; /* time of the current line; "": no times are shown */
    size_t number;               /* chooses the colour */
    struct prefixer prefixer;
    char bar[BAR_BYTES]; /* "" while none is drawn */
    bool bar_waiting;    /* not on a terminal: it is printed at the next turn */
    int64_t bar_ms;      /* when a bar was printed last */
    int64_t now_ms;
    int64_t begun_ms; /* since when bytes of the line wait to be shown; -1: none wait */
    bool begun;       /* the unfinished line is shown: on a terminal below the lines */
    size_t shown;     /* bytes of it that were put out (not on a terminal) */
    bool broken;      /* part of the line was put out before a break */
    char last[LOG_VIEW_LAST_LINES][KEPT_LINE_BYTES];
    size_t last_count; /* number of lines so far */
    struct log_view_stream *next;
};

void log_view_init(struct log_view *view, struct buf *out, bool terminal, bool colour)
{
    *view = (struct log_view){.out = out, .terminal = terminal, .colour = colour};
    log_view_resize(view, 0, 0);
}

void log_view_resize(struct log_view *view, int columns, int rows)
{
    view->columns = columns > 20 ? columns : 80;
    view->rows = rows > 4 ? rows : 24;
}

void log_view_done(struct log_view *view)
{
    struct log_view_stream *s;
    struct log_view_stream *next;
    LL_FOREACH_SAFE(view->streams, s, next)
    {
        prefixer_done(&s->prefixer);
        free(s);
    }
    view->streams = NULL;
}

struct log_view_stream *log_view_add(struct log_view *view, const char *label)
{
    struct log_view_stream *s = calloc(1, sizeof *s);
    if (!s) {
        return NULL;
    }
    s->view = view;
    s->number = view->stream_count++;
    s->bar_ms = INT64_MIN / 2;
    s->begun_ms = -1;
    snprintf(s->label, sizeof s->label, "%s", label);
    prefixer_init(&s->prefixer);
    LL_APPEND(view->streams, s);
    return s;
}

static void put_prefix(const struct log_view_stream *s)
{
    static const int colours[] = {36, 33, 32, 35, 34, 31};
    struct buf *out = s->view->out;
    if (*s->label && s->view->colour) {
        int colour = colours[s->number % (sizeof colours / sizeof colours[0])];
        buf_format(out, "\033[%dm[%s]\033[0m ", colour, s->label);
    } else if (*s->label) {
        buf_format(out, "[%s] ", s->label);
    }
    if (*s->stamp) {
        buf_format(out, "%s ", s->stamp);
    }
}

/* Erases the bars. The cursor is below the area before, and where its first line was afterwards. */
static void erase_bars(struct log_view *view)
{
    if (view->bars_drawn > 0) {
        buf_format(view->out, "\033[%zuA\033[J", view->bars_drawn);
        view->bars_drawn = 0;
    }
}

/* The end of the escape sequence that begins here. */
static const char *skip_escape(const char *at, const char *end)
{
    while (at < end && !strchr("ABCDEFGHJKSTfmnsu", *at)) {
        at++;
    }
    return at < end ? at + 1 : end;
}

static bool continues(const char *at, const char *end)
{
    return at < end && (*at & 0xC0) == 0x80;
}

/* Puts at most `room` whole UTF-8 characters after the first `skip`, without escape sequences.
 * Returns the number of all characters. */
static int put_cut(struct buf *out, const char *text, size_t bytes, int skip, int room)
{
    int count = 0;
    const char *end = text + bytes;
    for (const char *at = text; at < end;) {
        if (*at == '\033') {
            at = skip_escape(at, end);
            continue;
        }
        const char *from = at++;
        while (continues(at, end)) {
            at++;
        }
        if (out && count >= skip && count - skip < room) {
            bool control = (unsigned char)*from < ' ' || *from == 0x7f;
            buf_add(out, control ? " " : from, control ? 1 : (size_t)(at - from));
        }
        count++;
    }
    return count;
}

/* Puts one line of the area. A longer line would wrap and take two lines: of a bar the beginning is
 * shown, of an unfinished line the end. */
static void put_bar(const struct log_view_stream *s)
{
    int room = s->view->columns - (int)strlen(s->label) - 4;
    room -= *s->stamp ? (int)strlen(s->stamp) + 1 : 0;
    size_t bytes = 0;
    const char *partial = s->begun ? prefixer_partial(&s->prefixer, &bytes) : NULL;
    put_prefix(s);
    if (partial) {
        int count = put_cut(NULL, partial, bytes, 0, 0);
        bool cut = s->broken || count > room;
        buf_text(s->view->out, cut ? LOG_VIEW_BREAK : "");
        int skip = count > room - cut ? count - room + cut : 0;
        (void)put_cut(s->view->out, partial, bytes, skip, room);
    } else {
        (void)put_cut(s->view->out, s->bar, strlen(s->bar), 0, room);
    }
    buf_text(s->view->out, "\n");
}

/* Draws the bars. Lines above the terminal's first line cannot be erased again, so one line is left
 * for the logs. */
static void draw_bars(struct log_view *view)
{
    struct log_view_stream *s;
    LL_FOREACH(view->streams, s)
    {
        if ((*s->bar || s->begun) && view->bars_drawn + 2 < (size_t)view->rows) {
            put_bar(s);
            view->bars_drawn++;
        }
    }
}

/* Keeps the line for later messages, in which it must be one line of text. */
static void keep_for_repeat(struct log_view_stream *s, const char *text, size_t bytes)
{
    char *kept = s->last[s->last_count++ % LOG_VIEW_LAST_LINES];
    size_t count = bytes < KEPT_LINE_BYTES ? bytes : text_cut(text, KEPT_LINE_BYTES - 1);
    memcpy(kept, text, count);
    kept[count] = '\0';
    for (size_t i = 0; i < count; i++) {
        bool control = (unsigned char)kept[i] < ' ' || kept[i] == 0x7f;
        kept[i] = control ? ' ' : kept[i];
    }
}

void log_view_break(struct log_view *view)
{
    if (view->open) {
        buf_text(view->out, LOG_VIEW_BREAK "\n");
        view->open->broken = true;
        view->open = NULL;
    }
}

/* Puts the part of the current line that was not put out yet; the output's line stays open. */
static void put_rest(struct log_view_stream *s, const char *text, size_t bytes)
{
    size_t from = s->shown < bytes ? s->shown : bytes;
    erase_bars(s->view);
    if (s->view->open != s) {
        log_view_break(s->view);
        put_prefix(s);
        buf_text(s->view->out, s->broken ? LOG_VIEW_BREAK : "");
    }
    buf_add(s->view->out, text + from, bytes - from);
    s->view->open = s;
    s->shown = bytes;
}

static void forget_line(struct log_view_stream *s)
{
    s->begun = s->broken = false;
    s->begun_ms = -1;
    s->shown = 0;
}

/* Ends a line. If it was broken and has no more bytes, it ended at its break. */
static void put_line(struct log_view_stream *s, const char *text, size_t bytes)
{
    if (s->view->open == s || !s->broken || bytes > s->shown) {
        put_rest(s, text, bytes);
        buf_text(s->view->out, "\n");
        s->view->open = NULL;
    }
    forget_line(s);
}

static void on_line(void *context, const char *text, size_t bytes)
{
    struct log_view_stream *s = context;
    s->bar[0] = '\0';
    s->bar_waiting = false;
    put_line(s, text, bytes);
    if (bytes > 0) {
        keep_for_repeat(s, text, bytes);
    }
}

static void on_piece(void *context, const char *text, size_t bytes)
{
    struct log_view_stream *s = context;
    put_rest(s, text, bytes);
    log_view_break(s->view);
    s->shown = 0;
    keep_for_repeat(s, text, bytes);
}

static void print_waiting_bar(struct log_view_stream *s, int64_t now_ms)
{
    if (s->bar_waiting && now_ms - s->bar_ms >= LOG_VIEW_BAR_MS) {
        put_line(s, s->bar, strlen(s->bar));
        s->bar_waiting = false;
        s->bar_ms = now_ms;
    }
}

static void on_progress(void *context, const char *text, size_t bytes)
{
    struct log_view_stream *s = context;
    snprintf(s->bar, sizeof s->bar, "%.*s", (int)bytes, text);
    if (s->view->open == s) {
        log_view_break(s->view);
    }
    forget_line(s);
    if (s->view->terminal) {
        erase_bars(s->view);
        return; /* it is drawn after this feed */
    }
    s->bar_waiting = true;
    print_waiting_bar(s, s->now_ms);
}

static struct prefixer_sink sink_of(struct log_view_stream *s)
{
    return (struct prefixer_sink){on_line, on_piece, on_progress, s};
}

static void settle(struct log_view *view)
{
    if (view->terminal) {
        erase_bars(view);
        draw_bars(view);
    }
}

/* Puts out an unfinished line. It waits a little for its end, so that most lines stay whole; if the
 * output ends with this line, new bytes are put out at once. */
static void look_at_partial(struct log_view_stream *s, int64_t now_ms)
{
    size_t bytes = 0;
    const char *partial = prefixer_partial(&s->prefixer, &bytes);
    if (!partial || bytes <= s->shown) {
        s->begun_ms = -1;
        s->begun = s->begun && partial;
        return;
    }
    s->begun_ms = s->begun_ms >= 0 ? s->begun_ms : now_ms;
    int64_t wait_ms = s->view->terminal ? LOG_VIEW_TERMINAL_PARTIAL_MS : LOG_VIEW_PARTIAL_MS;
    bool due = s->view->prompts || now_ms - s->begun_ms >= wait_ms;
    if (s->view->terminal) {
        s->begun = s->begun || due;
    } else if (due || s->view->open == s) {
        put_rest(s, partial, bytes);
        s->begun_ms = -1;
    }
}

void log_view_stamp(struct log_view_stream *stream, const char *stamp)
{
    text_copy(stream->stamp, sizeof stream->stamp, stamp);
}

void log_view_feed(struct log_view_stream *stream, const char *bytes, size_t count, int64_t now_ms)
{
    struct prefixer_sink sink = sink_of(stream);
    stream->now_ms = now_ms;
    prefixer_feed(&stream->prefixer, bytes, count, &sink);
    look_at_partial(stream, now_ms);
    settle(stream->view);
}

void log_view_end(struct log_view_stream *stream)
{
    struct prefixer_sink sink = sink_of(stream);
    prefixer_end(&stream->prefixer, &sink);
    settle(stream->view);
}

void log_view_tick(struct log_view *view, int64_t now_ms)
{
    struct log_view_stream *s;
    bool redraw = false;
    LL_FOREACH(view->streams, s)
    {
        bool begun = s->begun;
        look_at_partial(s, now_ms);
        redraw = redraw || begun != s->begun;
        if (!view->terminal) {
            print_waiting_bar(s, now_ms);
        }
    }
    if (redraw) {
        settle(view);
    }
}

void log_view_note(struct log_view *view, const char *text)
{
    erase_bars(view);
    buf_format(view->out, "%s\n", text);
    settle(view);
}

const char *log_view_last_line(const struct log_view_stream *stream, size_t index)
{
    size_t kept =
        stream->last_count < LOG_VIEW_LAST_LINES ? stream->last_count : LOG_VIEW_LAST_LINES;
    if (index >= kept) {
        return NULL;
    }
    return stream->last[(stream->last_count - kept + index) % LOG_VIEW_LAST_LINES];
}
