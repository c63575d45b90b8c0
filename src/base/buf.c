/* See buf.h. Growth is by doubling, so that n appends cost O(n). */
#include "base/buf.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_init(struct buf *b, size_t max_bytes)
{
    *b = (struct buf){.max = max_bytes};
}

void buf_done(struct buf *b)
{
    free(b->data);
    *b = (struct buf){.max = b->max};
}

void buf_clear(struct buf *b)
{
    b->used = 0;
    b->failed = false;
    if (b->data) {
        b->data[0] = '\0';
    }
}

void buf_truncate(struct buf *b, size_t used)
{
    assert(used <= b->used);
    b->used = used;
    b->failed = false;
    if (b->data) {
        b->data[used] = '\0';
    }
}

static bool make_room(struct buf *b, size_t count)
{
    if (b->failed || count > b->max - b->used) {
        b->failed = true;
        return false;
    }
    size_t need = b->used + count + 1;
    if (need <= b->room) {
        return true;
    }
    size_t room = b->room ? b->room : 64;
    while (room < need) {
        room *= 2;
    }
    char *data = realloc(b->data, room);
    if (!data) {
        b->failed = true;
        return false;
    }
    b->data = data;
    b->room = room;
    return true;
}

char *buf_reserve(struct buf *b, size_t count)
{
    return make_room(b, count) ? b->data + b->used : NULL;
}

void buf_grew(struct buf *b, size_t count)
{
    assert(b->used + count < b->room);
    b->used += count;
    b->data[b->used] = '\0';
}

void buf_add(struct buf *b, const void *bytes, size_t count)
{
    char *at = buf_reserve(b, count);
    if (at) {
        if (count) {
            memcpy(at, bytes, count);
        }
        buf_grew(b, count);
    }
}

void buf_text(struct buf *b, const char *text)
{
    buf_add(b, text, strlen(text));
}

void buf_vformat(struct buf *b, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    char *at = n < 0 ? NULL : buf_reserve(b, (size_t)n);
    if (at) {
        (void)vsnprintf(at, (size_t)n + 1, format, again);
        buf_grew(b, (size_t)n);
    }
    va_end(again);
}

void buf_format(struct buf *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    buf_vformat(b, format, args);
    va_end(args);
}

void buf_consume(struct buf *b, size_t count)
{
    assert(count <= b->used);
    if (count) {
        memmove(b->data, b->data + count, b->used - count + 1);
        b->used -= count;
    }
}

bool buf_failed(const struct buf *b)
{
    return b->failed;
}

char *buf_steal(struct buf *b)
{
    if (b->failed) {
        return NULL;
    }
    char *text = b->data ? b->data : calloc(1, 1);
    *b = (struct buf){.max = b->max};
    return text;
}

const char *buf_str(const struct buf *b)
{
    return b->data ? b->data : "";
}
