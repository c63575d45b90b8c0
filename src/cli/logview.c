/* See logview.h. */
#include "cli/logview.h"

#include "cli/prefixer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum { BAR_BYTES = 1024, KEPT_LINE_BYTES = 400 };

struct logview_stream {
    struct logview *view;
    char label[LOGVIEW_LABEL_BYTES];
    size_t number; /* chooses the colour */
    struct prefixer prefixer;
    char bar[BAR_BYTES]; /* "" while none is drawn */
    bool bar_waiting;    /* not a terminal: to be printed at the next turn */
    int64_t bar_ms;      /* when one was printed last */
    int64_t now_ms;
    char last[LOGVIEW_LAST_LINES][KEPT_LINE_BYTES];
    size_t last_count; /* all lines ever */
    struct logview_stream *next;
};

void logview_init(struct logview *view, struct buf *out, bool terminal, bool colour)
{
    *view = (struct logview){.out = out, .terminal = terminal, .colour = colour};
    logview_resize(view, 0, 0);
}

void logview_resize(struct logview *view, int columns, int rows)
{
    view->columns = columns > 20 ? columns : 80;
    view->rows = rows > 4 ? rows : 24;
}

void logview_done(struct logview *view)
{
    struct logview_stream *s;
    struct logview_stream *next;
    LL_FOREACH_SAFE(view->streams, s, next)
    {
        prefixer_done(&s->prefixer);
        free(s);
    }
    view->streams = NULL;
}

struct logview_stream *logview_add(struct logview *view, const char *label)
{
    struct logview_stream *s = calloc(1, sizeof *s);
    if (!s) {
        return NULL;
    }
    s->view = view;
    s->number = view->stream_count++;
    s->bar_ms = INT64_MIN / 2;
    snprintf(s->label, sizeof s->label, "%s", label);
    prefixer_init(&s->prefixer);
    LL_APPEND(view->streams, s);
    return s;
}

static void put_prefix(const struct logview_stream *s)
{
    static const int colours[] = {36, 33, 32, 35, 34, 31};
    struct buf *out = s->view->out;
    if (!*s->label) {
        return;
    }
    if (s->view->colour) {
        int colour = colours[s->number % (sizeof colours / sizeof colours[0])];
        buf_format(out, "\033[%dm[%s]\033[0m ", colour, s->label);
    } else {
        buf_format(out, "[%s] ", s->label);
    }
}

/* The cursor stands below the area; afterwards where its first line was. */
static void erase_bars(struct logview *view)
{
    if (view->bars_drawn > 0) {
        buf_format(view->out, "\033[%zuA\033[J", view->bars_drawn);
        view->bars_drawn = 0;
    }
}

/* A bar that wraps would take two lines of the area: cut to the terminal, whole UTF-8 characters,
 * cursor movements left out. */
static void put_bar(const struct logview_stream *s)
{
    int room = s->view->columns - (int)strlen(s->label) - 4;
    put_prefix(s);
    for (const char *at = s->bar; *at && room > 0; at++) {
        if (*at == '\033') {
            at += strcspn(at, "ABCDEFGHJKSTfmnsu");
            at -= *at == '\0';
            continue;
        }
        buf_add(s->view->out, at, 1);
        while ((at[1] & 0xC0) == 0x80) {
            buf_add(s->view->out, ++at, 1);
        }
        room--;
    }
    buf_text(s->view->out, "\n");
}

/* What stands above the terminal's first line cannot be erased again: a line is left for the logs.
 */
static void draw_bars(struct logview *view)
{
    struct logview_stream *s;
    LL_FOREACH(view->streams, s)
    {
        if (*s->bar && view->bars_drawn + 2 < (size_t)view->rows) {
            put_bar(s);
            view->bars_drawn++;
        }
    }
}

static void remember(struct logview_stream *s, const char *text, size_t bytes)
{
    char *kept = s->last[s->last_count++ % LOGVIEW_LAST_LINES];
    snprintf(kept, KEPT_LINE_BYTES, "%.*s", (int)bytes, text);
}

static void put_line(struct logview_stream *s, const char *text, size_t bytes)
{
    erase_bars(s->view);
    put_prefix(s);
    buf_add(s->view->out, text, bytes);
    buf_text(s->view->out, "\n");
}

static void on_line(void *context, const char *text, size_t bytes)
{
    struct logview_stream *s = context;
    s->bar[0] = '\0';
    s->bar_waiting = false;
    put_line(s, text, bytes);
    if (bytes > 0) {
        remember(s, text, bytes);
    }
}

static void print_waiting_bar(struct logview_stream *s, int64_t now_ms)
{
    if (s->bar_waiting && now_ms - s->bar_ms >= LOGVIEW_BAR_MS) {
        put_line(s, s->bar, strlen(s->bar));
        s->bar_waiting = false;
        s->bar_ms = now_ms;
    }
}

static void on_progress(void *context, const char *text, size_t bytes)
{
    struct logview_stream *s = context;
    snprintf(s->bar, sizeof s->bar, "%.*s", (int)bytes, text);
    if (s->view->terminal) {
        erase_bars(s->view);
        return; /* drawn after this feed */
    }
    s->bar_waiting = true;
    print_waiting_bar(s, s->now_ms);
}

static struct prefixer_sink sink_of(struct logview_stream *s)
{
    return (struct prefixer_sink){on_line, on_progress, s};
}

static void settle(struct logview *view)
{
    if (view->terminal) {
        erase_bars(view);
        draw_bars(view);
    }
}

void logview_feed(struct logview_stream *stream, const char *bytes, size_t count, int64_t now_ms)
{
    struct prefixer_sink sink = sink_of(stream);
    stream->now_ms = now_ms;
    prefixer_feed(&stream->prefixer, bytes, count, &sink);
    settle(stream->view);
}

void logview_end(struct logview_stream *stream)
{
    struct prefixer_sink sink = sink_of(stream);
    prefixer_end(&stream->prefixer, &sink);
    settle(stream->view);
}

void logview_tick(struct logview *view, int64_t now_ms)
{
    struct logview_stream *s;
    LL_FOREACH(view->streams, s)
    {
        if (!view->terminal) {
            print_waiting_bar(s, now_ms);
        }
    }
}

void logview_note(struct logview *view, const char *text)
{
    erase_bars(view);
    buf_format(view->out, "%s\n", text);
    settle(view);
}

const char *logview_last_line(const struct logview_stream *stream, size_t index)
{
    size_t kept = stream->last_count < LOGVIEW_LAST_LINES ? stream->last_count : LOGVIEW_LAST_LINES;
    if (index >= kept) {
        return NULL;
    }
    return stream->last[(stream->last_count - kept + index) % LOGVIEW_LAST_LINES];
}
