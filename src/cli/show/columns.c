/* See columns.h. */
#include "cli/show/columns.h"

#include <string.h>

enum { HELD_BYTES_MAX = 16 << 20, GAP = 2 };

void columns_init(struct columns *c, struct buf *out)
{
    *c = (struct columns){.out = out};
    buf_init(&c->held, HELD_BYTES_MAX);
}

static void flush(struct columns *c)
{
    const char *at = c->held.data;
    for (size_t i = 0; i < c->lines; i++) {
        const char *label = at;
        const char *value = label + strlen(label) + 1;
        buf_format(c->out, "%-*s%s\n", (int)(c->width + GAP), label, value);
        at = value + strlen(value) + 1;
    }
    buf_clear(&c->held);
    c->lines = 0;
    c->width = 0;
}

void columns_done(struct columns *c)
{
    flush(c);
    buf_done(&c->held);
}

static void hold(struct columns *c, int level, const char *label, const char *value)
{
    size_t start = c->held.used;
    buf_format(&c->held, "%*s%s", level * 2, "", label);
    size_t width = c->held.used - start;
    buf_add(&c->held, "", 1);
    buf_add(&c->held, value, strlen(value) + 1);
    c->width = width > c->width ? width : c->width;
    c->lines += !buf_failed(&c->held);
}

void columns_line(struct columns *c, int level, const char *label, const char *value)
{
    struct buf text;
    buf_init(&text, HELD_BYTES_MAX);
    buf_format(&text, "%s:", label);
    if (value) {
        hold(c, level, buf_str(&text), value);
    } else {
        columns_text(c, level, buf_str(&text));
    }
    buf_done(&text);
}

void columns_more(struct columns *c, const char *value)
{
    hold(c, 0, "", value);
}

void columns_text(struct columns *c, int level, const char *text)
{
    flush(c);
    buf_format(c->out, "%*s%s\n", level * 2, "", text);
}
