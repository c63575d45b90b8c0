/* See parts_sum.h. */
#include "comm/api/parts_sum.h"

#include "comm/reduce/half.h"

#include <assert.h>
#include <string.h>

static void add(const struct parts *p, void *to, const void *a, const void *b, size_t count)
{
    const void *const both[2] = {a, b};
    reduce_find(p->wide, MUSTER_SUM)(to, both, 2, count, 1);
}

/* Sums the node `span` from the nodes from *at on, which lie inside it. Returns the sum, which is
 * at `to` or is one of these nodes. */
static const char *sum_node(const struct parts *p, struct tree_span span, const struct node **at,
                            char *to, size_t count, int depth)
{
    assert(depth < PARTS_DEPTH && span.count > 0 && count <= PARTS_CHUNK);
    if ((*at)->span.first == span.first && (*at)->span.count == span.count) {
        return (*at)++->values;
    }
    size_t half = tree_left(span.count);
    struct tree_span lower = {span.first, half}, upper = {span.first + half, span.count - half};
    char *mine = p->stack + (size_t)depth * PARTS_CHUNK * p->wide_bytes;
    const char *left = sum_node(p, lower, at, mine, count, depth + 1);
    const char *right = sum_node(p, upper, at, to, count, depth + 1);
    add(p, to, left, right, count);
    return to;
}

static void widen(const struct parts *p, const char *from, char *to, size_t count)
{
    const uint16_t *half = (const uint16_t *)(const void *)from;
    float *wide = (float *)(void *)to;
    for (size_t i = 0; i < count && p->wide != p->type; i++) {
        wide[i] = p->type == MUSTER_F16 ? half_to_float(half[i]) : bfloat_to_float(half[i]);
    }
    if (p->wide == p->type) {
        memcpy(to, from, count * p->wide_bytes);
    }
}

/* Writes the sum in the form that the user gets: divided, and in the type of the call. `from` may
 * be `to`. */
static void narrow(const struct parts *p, const char *from, char *to, size_t count, int divisor)
{
    const void *source = from;
    if (divisor > 1) {
        reduce_find(p->wide, MUSTER_AVG)(p->root, &source, 1, count, divisor);
        from = p->root;
    }
    const float *wide = (const float *)(const void *)from;
    for (size_t i = 0; i < count && p->wide != p->type; i++) {
        uint16_t half =
            p->type == MUSTER_F16 ? half_from_float(wide[i]) : bfloat_from_float(wide[i]);
        memcpy(to + i * sizeof half, &half, sizeof half);
    }
    if (p->wide == p->type && from != to) {
        memcpy(to, from, count * p->wide_bytes);
    }
}

struct tree_span parts_slice_of(const struct parts *p, int rank, size_t length)
{
    assert(rank >= 0 && rank < p->comm->size && length <= p->piece);
    size_t size = (size_t)p->comm->size, r = (size_t)rank;
    if (p->gathers) {
        return (struct tree_span){0, length};
    }
    size_t first = length / size * r + (r < length % size ? r : length % size);
    return (struct tree_span){first, length / size + (r < length % size)};
}

/* Makes this rank's parts the leaves, from element `start` on, in the type in which they are
 * summed. */
static void list_leaves(struct parts *p, const char *parts, size_t start, size_t count,
                        size_t stride)
{
    size_t unit = muster_type_bytes(p->type);
    struct tree_span mine = p->spans[p->comm->rank];
    for (size_t i = 0; i < mine.count; i++) {
        const char *values = parts + (i * stride + start) * unit;
        if (p->wide != p->type) {
            char *to = p->widened + i * count * p->wide_bytes;
            widen(p, values, to, count);
            values = to;
        }
        p->leaves[i] = (struct node){{mine.first + i, 1}, values};
    }
}

/* Sums this rank's nodes for `count` elements from `start` on, each node to its column. A column
 * has `height` elements, and these elements begin at `at`. */
static void sum_chunk(struct parts *p, const char *parts, size_t start, size_t count, size_t stride,
                      char *columns, size_t height, size_t at)
{
    struct tree_span cover[TREE_MAX_COVER];
    size_t num = tree_cover(p->total, p->spans[p->comm->rank], cover);
    list_leaves(p, parts, start, count, stride);
    const struct node *leaf = p->leaves;
    for (size_t n = 0; n < num; n++) {
        char *to = columns + (n * height + at) * p->wide_bytes;
        const char *sum = sum_node(p, cover[n], &leaf, to, count, 0);
        if (sum != to) {
            memcpy(to, sum, count * p->wide_bytes);
        }
    }
}

void parts_sum_own(struct parts *p, const char *parts, size_t start, size_t length, size_t stride)
{
    size_t mine = p->num_nodes[p->comm->rank];
    for (int r = 0; !p->direct && r < (p->gathers ? 1 : p->comm->size); r++) {
        struct tree_span slice = parts_slice_of(p, r, length);
        char *columns = p->local + mine * slice.first * p->wide_bytes;
        for (size_t at = 0; at < slice.count; at += PARTS_CHUNK) {
            size_t count = slice.count - at < PARTS_CHUNK ? slice.count - at : PARTS_CHUNK;
            sum_chunk(p, parts, start + slice.first + at, count, stride, columns, slice.count, at);
        }
    }
}

void parts_sum_slice(struct parts *p, char *slice, size_t height, int divisor)
{
    size_t unit = muster_type_bytes(p->type);
    for (size_t at = 0; at < height; at += PARTS_CHUNK) {
        size_t count = height - at < PARTS_CHUNK ? height - at : PARTS_CHUNK, num = 0;
        for (int r = 0; r < p->comm->size; r++) {
            struct tree_span cover[TREE_MAX_COVER];
            size_t nodes = tree_cover(p->total, p->spans[r], cover);
            for (size_t n = 0; n < nodes; n++, num++) {
                const char *values = p->gathered + (num * height + at) * p->wide_bytes;
                p->nodes[num] = (struct node){cover[n], values};
            }
        }
        const struct node *first = p->nodes;
        char *to = slice + at * unit;
        struct tree_span all = {0, p->total};
        const char *sum = sum_node(p, all, &first, p->wide == p->type ? to : p->root, count, 0);
        narrow(p, sum, to, count, divisor);
    }
}
