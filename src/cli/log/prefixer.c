/* See prefixer.h. */
#include "cli/log/prefixer.h"

#include <string.h>

void prefixer_init(struct prefixer *p)
{
    *p = (struct prefixer){0};
    buf_init(&p->line, PREFIXER_LINE_BYTES_MAX);
}

void prefixer_done(struct prefixer *p)
{
    buf_done(&p->line);
}

static void end_line(struct prefixer *p, const struct prefixer_sink *sink)
{
    sink->line(sink->context, buf_str(&p->line), p->line.used);
    buf_clear(&p->line);
    p->bar = false;
    p->returned = false;
}

/* The number of bytes at the end that begin a UTF-8 character without completing it. */
static size_t broken_end(const struct buf *line)
{
    for (size_t n = 1; n <= 3 && n <= line->used; n++) {
        unsigned char c = (unsigned char)line->data[line->used - n];
        if (c >= 0xC0) {
            size_t needs = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
            return needs > n ? n : 0;
        }
        if (c < 0x80) {
            return 0;
        }
    }
    return 0;
}

static void end_piece(struct prefixer *p, const struct prefixer_sink *sink)
{
    size_t count = p->line.used - broken_end(&p->line);
    sink->piece(sink->context, p->line.data, count);
    buf_consume(&p->line, count);
}

static void add(struct prefixer *p, const char *bytes, size_t count,
                const struct prefixer_sink *sink)
{
    while (count > 0) {
        size_t room = PREFIXER_LINE_BYTES_MAX - p->line.used;
        size_t some = count < room ? count : room;
        buf_add(&p->line, bytes, some);
        bytes += some;
        count -= some;
        if (count > 0) {
            end_piece(p, sink);
        }
    }
}

const char *prefixer_partial(const struct prefixer *p, size_t *ret_bytes)
{
    size_t count = p->bar ? 0 : p->line.used - broken_end(&p->line);
    *ret_bytes = count;
    return count > 0 ? p->line.data : NULL;
}

/* Clears the line if the last byte was a carriage return: the next text replaces it. */
static void start_over(struct prefixer *p)
{
    if (p->returned) {
        buf_clear(&p->line);
        p->returned = false;
    }
}

void prefixer_feed(struct prefixer *p, const char *bytes, size_t count,
                   const struct prefixer_sink *sink)
{
    const char *end = bytes + count;
    while (bytes < end) {
        size_t run = 0;
        while (bytes + run < end && bytes[run] != '\n' && bytes[run] != '\r') {
            run++;
        }
        if (run > 0) {
            start_over(p);
            add(p, bytes, run, sink);
        }
        bytes += run;
        if (bytes < end && *bytes == '\n') {
            end_line(p, sink);
        } else if (bytes < end) {
            p->bar = true;
            p->returned = true;
        }
        bytes += bytes < end;
    }
    if (p->bar && p->line.used > 0) {
        sink->progress(sink->context, buf_str(&p->line), p->line.used);
    }
}

void prefixer_end(struct prefixer *p, const struct prefixer_sink *sink)
{
    if (p->line.used > 0) {
        end_line(p, sink);
    }
}
