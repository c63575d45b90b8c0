/* See log_merge.h. Each source holds a queue of pieces: whole lines, or parts of one. */
#include "cli/log/log_merge.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

struct piece {
    struct piece *prev, *next;
    int64_t unix_ms; /* when its line began */
    int64_t arrived_ms;
    bool begins;
    bool ends; /* with a newline */
    size_t count;
    size_t room;
    char *bytes;
};

struct log_merge_source {
    struct log_merge *merge;
    void *owner;
    struct piece *queue;
    size_t held;
    int64_t line_unix_ms; /* when the open line began */
    bool in_line;         /* the last byte fed was not a newline */
    bool ended;
    bool said_last; /* its end was given out */
    int64_t watermark_unix_ms;
    struct log_merge_source *next;
};

struct log_merge {
    int64_t hold_ms;
    struct log_merge_source *sources;
    struct piece *taken; /* the piece that was given out last */
};

struct log_merge *log_merge_new(int64_t hold_ms)
{
    struct log_merge *merge = calloc(1, sizeof *merge);
    if (merge) {
        merge->hold_ms = hold_ms;
    }
    return merge;
}

static void free_piece(struct piece *piece)
{
    if (piece) {
        free(piece->bytes);
        free(piece);
    }
}

void log_merge_free(struct log_merge *merge)
{
    struct log_merge_source *s;
    struct log_merge_source *next;
    if (!merge) {
        return;
    }
    LL_FOREACH_SAFE(merge->sources, s, next)
    {
        struct piece *p;
        struct piece *after;
        DL_FOREACH_SAFE (s->queue, p, after) {
            free_piece(p);
        }
        free(s);
    }
    free_piece(merge->taken);
    free(merge);
}

struct log_merge_source *log_merge_add(struct log_merge *merge, void *owner)
{
    struct log_merge_source *s = calloc(1, sizeof *s);
    if (s) {
        s->merge = merge;
        s->owner = owner;
        s->watermark_unix_ms = INT64_MIN;
        s->ended = s->said_last = true;
        LL_APPEND(merge->sources, s);
    }
    return s;
}

/* ---- Feeding ---- */

static struct piece *new_piece(struct log_merge_source *s, int64_t now_ms)
{
    struct piece *p = calloc(1, sizeof *p);
    if (p) {
        p->unix_ms = s->line_unix_ms;
        p->arrived_ms = now_ms;
        p->begins = !s->in_line;
        s->held += sizeof *p;
        DL_APPEND(s->queue, p);
    }
    return p;
}

/* The piece in which the open line continues: the last of the queue, if it belongs to the line and
 * has room, else a new one. */
static struct piece *open_piece(struct log_merge_source *s, int64_t now_ms)
{
    struct piece *last = s->queue ? s->queue->prev : NULL;
    bool fits = last && !last->ends && last->count < LOG_MERGE_PIECE_BYTES;
    return fits ? last : new_piece(s, now_ms);
}

static bool make_room(struct piece *p, size_t count)
{
    if (p->room - p->count >= count) {
        return true;
    }
    size_t room = p->room == 0 ? count : 2 * (p->count + count);
    char *bytes = realloc(p->bytes, room);
    p->bytes = bytes ? bytes : p->bytes;
    p->room = bytes ? room : p->room;
    return bytes != NULL;
}

/* Adds as many of the bytes as belong to one piece, and returns their number; 0: out of memory. */
static size_t add_piece(struct log_merge_source *s, const char *bytes, size_t count, int64_t now_ms)
{
    const char *newline = memchr(bytes, '\n', count);
    size_t length = newline ? (size_t)(newline - bytes) + 1 : count;
    struct piece *p = open_piece(s, now_ms);
    if (!p) {
        return 0;
    }
    size_t space = LOG_MERGE_PIECE_BYTES - p->count;
    length = length < space ? length : space;
    if (!make_room(p, length)) {
        return 0;
    }
    memcpy(p->bytes + p->count, bytes, length);
    p->count += length;
    p->ends = bytes[length - 1] == '\n';
    s->in_line = !p->ends;
    s->held += length;
    return length;
}

void log_merge_begin(struct log_merge_source *source)
{
    source->ended = source->said_last = false;
}

bool log_merge_feed(struct log_merge_source *source, int64_t unix_ms, const char *bytes,
                    size_t count, int64_t now_ms)
{
    assert(!source->ended);
    while (count > 0) {
        source->line_unix_ms = source->in_line ? source->line_unix_ms : unix_ms;
        size_t taken = add_piece(source, bytes, count, now_ms);
        if (taken == 0) {
            return false;
        }
        bytes += taken;
        count -= taken;
    }
    return true;
}

void log_merge_watermark(struct log_merge_source *source, int64_t unix_ms)
{
    source->watermark_unix_ms = unix_ms;
}

/* Ends the open line: the next run begins a new one. */
void log_merge_end(struct log_merge_source *source)
{
    source->ended = true;
    source->in_line = false;
    if (source->queue) {
        source->queue->prev->ends = true;
    }
}

bool log_merge_is_full(const struct log_merge_source *source)
{
    return source->held >= LOG_MERGE_FULL_BYTES;
}

/* ---- Taking ---- */

static bool has_waited(const struct log_merge *merge, const struct piece *p, int64_t now_ms)
{
    return merge->hold_ms >= 0 && now_ms - p->arrived_ms >= merge->hold_ms;
}

/* Whether nothing earlier than `p` can come from this source, which has nothing at hand. */
static bool lets_pass(const struct log_merge_source *s, const struct piece *p)
{
    return s->ended || s->watermark_unix_ms >= p->unix_ms;
}

static struct log_merge_source *earliest(const struct log_merge *merge)
{
    struct log_merge_source *best = NULL;
    struct log_merge_source *s;
    LL_FOREACH(merge->sources, s)
    {
        /* the rest of a line that was begun comes before a line of the same time */
        bool before = s->queue && (!best || s->queue->unix_ms < best->queue->unix_ms ||
                                   (s->queue->unix_ms == best->queue->unix_ms &&
                                    !s->queue->begins && best->queue->begins));
        best = before ? s : best;
    }
    return best;
}

static bool may_go(const struct log_merge *merge, const struct log_merge_source *best,
                   int64_t now_ms)
{
    const struct piece *p = best->queue;
    if (has_waited(merge, p, now_ms)) {
        return true;
    }
    if (!p->ends && p->count < LOG_MERGE_PIECE_BYTES) {
        return false;
    }
    const struct log_merge_source *s;
    LL_FOREACH(merge->sources, s)
    {
        if (!s->queue && !lets_pass(s, p)) {
            return false;
        }
    }
    return true;
}

static void give(struct log_merge_source *s, struct log_merge_piece *ret)
{
    struct piece *p = s->queue;
    DL_DELETE(s->queue, p);
    assert(s->held >= sizeof *p + p->count);
    s->held -= sizeof *p + p->count;
    s->merge->taken = p;
    s->said_last = s->ended && !s->queue;
    *ret = (struct log_merge_piece){.owner = s->owner,
                                    .unix_ms = p->unix_ms,
                                    .begins = p->begins,
                                    .last = s->said_last,
                                    .bytes = p->bytes,
                                    .count = p->count};
}

/* Gives out the end of a source that ended after its last piece was given out. */
static bool give_end(const struct log_merge *merge, struct log_merge_piece *ret)
{
    struct log_merge_source *s;
    LL_FOREACH(merge->sources, s)
    {
        if (s->ended && !s->said_last && !s->queue) {
            s->said_last = true;
            *ret = (struct log_merge_piece){.owner = s->owner, .last = true};
            return true;
        }
    }
    return false;
}

bool log_merge_take(struct log_merge *merge, int64_t now_ms, struct log_merge_piece *ret)
{
    free_piece(merge->taken);
    merge->taken = NULL;
    if (give_end(merge, ret)) {
        return true;
    }
    struct log_merge_source *best = earliest(merge);
    if (!best || !may_go(merge, best, now_ms)) {
        return false;
    }
    give(best, ret);
    return true;
}
