/* Summing logical parts along one fixed tree. Each rank sums the largest nodes of the tree that its
 * parts fill; whoever has the nodes of all ranks goes on from there to the root: the same additions
 * in the same order, however many ranks share the parts.
 *
 * Few elements: all ranks gather the nodes, and each sums them all. Many: each rank gets the nodes
 * of its slice of the elements, sums these, and the slices are gathered. Piece by piece, so that
 * memory stays bounded.
 *
 * 16-bit floats are widened to f32 on the way in and rounded once, at the root. Integers wrap, so
 * that their order does not matter; they take the same way.
 *
 * Layer: comm. Memory: freed before returning. Thread: the caller's.
 */
#include "comm/health/failure.h"
#include "comm/progress/inside.h"
#include "comm/reduce/half.h"
#include "comm/system/sized.h"
#include "schedule/tree.h"

#include <stdlib.h>
#include <string.h>

enum {
    CHUNK = 4096, /* elements that are summed at once: they stay in the cache */
    DEPTH = 66,
    GATHER_BYTES = 64 * 1024, /* of all nodes: up to here all ranks sum all */
    PIECE_BYTES = 8 << 20,    /* of all nodes that are moved at once … */
    PIECE_ELEMENTS = 1 << 16, /* … and their elements, at most */
};

/* Values of one node for the elements of the chunk. */
struct node {
    struct tree_span span;
    const char *values;
};

/* What a rank calls: its parts, and what must be equal on all ranks. */
struct offer {
    uint64_t first;
    uint64_t count;
    uint64_t total;
    uint64_t elements;
    uint64_t type;
    uint64_t op;
};

struct parts {
    struct muster_comm *comm;
    enum muster_type type; /* of the user */
    enum muster_type wide; /* summed in */
    size_t wide_bytes;
    size_t total;
    struct tree_span spans[MUSTER_MAX_RANKS]; /* of all ranks */
    size_t num_nodes[MUSTER_MAX_RANKS];       /* that cover them */
    size_t all_nodes;
    bool direct;         /* this rank brings one part, which is sent as it is */
    bool gathers;        /* all ranks sum all elements */
    size_t piece;        /* elements */
    struct node *nodes;  /* of all ranks */
    struct node *leaves; /* of this rank */
    char *local;         /* this rank's nodes, for one rank's slice after the other … */
    char *gathered;      /* … and those of all, of this rank's slice */
    char *slice;         /* its sum, in the user's type */
    char *widened;       /* a chunk of this rank's parts */
    char *root;          /* a chunk of the sum */
    char *stack;         /* sums of left children, by depth */
};

static void add(const struct parts *p, void *to, const void *a, const void *b, size_t count)
{
    const void *const both[2] = {a, b};
    reduce_find(p->wide, MUSTER_SUM)(to, both, 2, count, 1);
}

/* The sum of the node `span`, from nodes at *at on; each of them lies inside it. It is at `to`, or
 * is one of them. */
static const char *sum_node(const struct parts *p, struct tree_span span, const struct node **at,
                            char *to, size_t count, int depth)
{
    if ((*at)->span.first == span.first && (*at)->span.count == span.count) {
        return (*at)++->values;
    }
    size_t half = tree_left(span.count);
    struct tree_span lower = {span.first, half}, upper = {span.first + half, span.count - half};
    char *mine = p->stack + (size_t)depth * CHUNK * p->wide_bytes;
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

/* The sum as the user gets it; `from` may be `to`. */
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

/* ---- what all ranks bring ---- */

static int check_cover(const struct parts *p, struct muster_err *err)
{
    size_t next = 0;
    for (int r = 0; r < p->comm->size; r++) {
        if (p->spans[r].count > 0 && p->spans[r].first != next) {
            return muster_fail(
                err, MUSTER_EINVAL,
                "parts must cover 0 to %zu in rank order: rank %d starts at %zu, not %zu", p->total,
                r, p->spans[r].first, next);
        }
        next += p->spans[r].count;
    }
    return next == p->total
               ? 0
               : muster_fail(err, MUSTER_EINVAL, "all ranks together pass %zu parts of %zu", next,
                             p->total);
}

static int compare(const struct parts *p, const struct offer *mine, const struct offer *other,
                   int rank, struct muster_err *err)
{
    bool equal = mine->total == other->total && mine->elements == other->elements &&
                 mine->type == other->type && mine->op == other->op;
    if (equal) {
        return 0;
    }
    const char *types[] = {muster_type_name((enum muster_type)mine->type),
                           muster_type_name((enum muster_type)other->type)};
    const char *ops[] = {muster_op_name((enum muster_op)mine->op),
                         muster_op_name((enum muster_op)other->op)};
    muster_fail(err, MUSTER_EMISMATCH,
                "rank %d calls %zu parts of %zu %s by %s, rank %d calls %zu parts of %zu %s by %s",
                p->comm->rank, (size_t)mine->total, (size_t)mine->elements, types[0], ops[0], rank,
                (size_t)other->total, (size_t)other->elements, types[1], ops[1]);
    if (err) {
        err->rank = rank;
    }
    failure_close(p->comm, MUSTER_EMISMATCH);
    return MUSTER_EMISMATCH;
}

/* Tells all what this rank brings, and hears what they do. */
static int gather_offers(struct parts *p, const struct offer *mine, struct muster_err *err)
{
    struct offer all[MUSTER_MAX_RANKS];
    int r = muster_all_gather(p->comm, mine, all, sizeof *mine / sizeof(uint64_t), MUSTER_I64, err);
    for (int peer = 0; r == 0 && peer < p->comm->size; peer++) {
        r = compare(p, mine, &all[peer], peer, err);
        p->spans[peer] = (struct tree_span){all[peer].first, all[peer].count};
    }
    return r < 0 ? r : check_cover(p, err);
}

/* What one piece has, and how it is moved: alike on all ranks. */
static void plan_pieces(struct parts *p, size_t elements)
{
    struct tree_span cover[TREE_MAX_COVER];
    for (int r = 0; r < p->comm->size; r++) {
        p->num_nodes[r] = tree_cover(p->total, p->spans[r], cover);
        p->all_nodes += p->num_nodes[r];
    }
    size_t column = p->all_nodes * p->wide_bytes, most = PIECE_BYTES / column;
    p->gathers = p->comm->size == 1 || elements <= GATHER_BYTES / column;
    most = p->gathers              ? CHUNK
           : most > PIECE_ELEMENTS ? PIECE_ELEMENTS
           : most < CHUNK          ? CHUNK
                                   : most;
    p->piece = elements < most ? elements : most;
    p->direct = p->spans[p->comm->rank].count == 1 && p->wide == p->type;
}

/* The elements of a piece of that length that a rank sums. */
static struct tree_span slice_of(const struct parts *p, int rank, size_t length)
{
    size_t size = (size_t)p->comm->size, r = (size_t)rank;
    if (p->gathers) {
        return (struct tree_span){0, length};
    }
    size_t first = length / size * r + (r < length % size ? r : length % size);
    return (struct tree_span){first, length / size + (r < length % size)};
}

static int allocate(struct parts *p, struct muster_err *err)
{
    size_t chunk = CHUNK * p->wide_bytes, mine = p->num_nodes[p->comm->rank];
    size_t leaves = p->spans[p->comm->rank].count;
    size_t slice = slice_of(p, 0, p->piece).count;
    p->nodes = calloc(p->all_nodes + 1, sizeof *p->nodes);
    p->leaves = calloc(leaves + 1, sizeof *p->leaves);
    p->local = malloc((mine * p->piece + 1) * p->wide_bytes);
    p->gathered = malloc((p->all_nodes * slice + 1) * p->wide_bytes);
    p->slice = malloc((slice + 1) * muster_type_bytes(p->type));
    p->widened = malloc(p->wide == p->type ? 1 : (leaves + 1) * chunk);
    p->root = malloc(chunk);
    p->stack = malloc(DEPTH * chunk);
    return p->nodes && p->leaves && p->local && p->gathered && p->slice && p->widened && p->root &&
                   p->stack
               ? 0
               : muster_fail(err, MUSTER_ENOMEM, "no memory for %zu parts", p->total);
}

static void release(struct parts *p)
{
    free(p->nodes);
    free(p->leaves);
    free(p->local);
    free(p->gathered);
    free(p->slice);
    free(p->widened);
    free(p->root);
    free(p->stack);
}

/* ---- a piece ---- */

/* The values of this rank's parts from element `start` on, as they are summed. */
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

/* This rank's nodes for `count` elements from `start` on, each to its column; the columns have
 * `height` elements, and these are there from `at` on. */
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

/* This rank's nodes of a piece, for one rank after the other; where all gather, for all at once. */
static void sum_own(struct parts *p, const char *parts, size_t start, size_t length, size_t stride)
{
    size_t mine = p->num_nodes[p->comm->rank];
    for (int r = 0; !p->direct && r < (p->gathers ? 1 : p->comm->size); r++) {
        struct tree_span slice = slice_of(p, r, length);
        char *columns = p->local + mine * slice.first * p->wide_bytes;
        for (size_t at = 0; at < slice.count; at += CHUNK) {
            size_t count = slice.count - at < CHUNK ? slice.count - at : CHUNK;
            sum_chunk(p, parts, start + slice.first + at, count, stride, columns, slice.count, at);
        }
    }
}

/* Each rank gets what it sums. */
static int move_nodes(struct parts *p, const char *nodes, size_t length, struct muster_err *err)
{
    size_t in[MUSTER_MAX_RANKS], out[MUSTER_MAX_RANKS];
    size_t own = slice_of(p, p->comm->rank, length).count;
    for (int r = 0; r < p->comm->size; r++) {
        in[r] = p->num_nodes[p->comm->rank] * slice_of(p, r, length).count;
        out[r] = p->num_nodes[r] * own;
    }
    return p->gathers ? muster_all_gatherv(p->comm, nodes, p->gathered, out, p->wide, err)
                      : muster_all_to_allv(p->comm, nodes, in, p->gathered, out, p->wide, err);
}

/* The sum of this rank's slice. */
static void sum_slice(struct parts *p, char *slice, size_t height, int divisor)
{
    size_t unit = muster_type_bytes(p->type);
    for (size_t at = 0; at < height; at += CHUNK) {
        size_t count = height - at < CHUNK ? height - at : CHUNK, num = 0;
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

static int gather_slices(struct parts *p, char *out, size_t length, struct muster_err *err)
{
    size_t counts[MUSTER_MAX_RANKS];
    if (p->gathers) {
        memcpy(out, p->slice, length * muster_type_bytes(p->type));
        return 0;
    }
    for (int r = 0; r < p->comm->size; r++) {
        counts[r] = slice_of(p, r, length).count;
    }
    return muster_all_gatherv(p->comm, p->slice, out, counts, p->type, err);
}

static size_t most_elements(enum muster_type type, size_t total)
{
    return (size_t)PTRDIFF_MAX / muster_type_bytes(type) / total;
}

static int check(const void *parts, size_t num_parts, size_t total, const void *out, size_t count,
                 enum muster_type type, enum muster_op op, struct muster_err *err)
{
    if ((op != MUSTER_SUM && op != MUSTER_AVG) || !muster_type_bytes(type) || type == MUSTER_BOOL) {
        return muster_fail(err, MUSTER_EINVAL,
                           "parts can be reduced by sum and avg only, and not as bool");
    }
    if (total == 0 || total > INT32_MAX || num_parts > total ||
        (count > 0 && (!out || (!parts && num_parts > 0)))) {
        return muster_fail(err, MUSTER_EINVAL,
                           "%zu of %zu parts: 1 to %d parts are needed, and buffers", num_parts,
                           total, INT32_MAX);
    }
    if (count > most_elements(type, total)) {
        return muster_fail(err, MUSTER_EINVAL,
                           "%zu parts of %zu elements are more than memory can hold", total, count);
    }
    return 0;
}

static int sum_pieces(struct parts *p, const void *parts, void *out, const struct offer *mine,
                      struct muster_err *err)
{
    int r = gather_offers(p, mine, err);
    if (r < 0) {
        return r;
    }
    size_t unit = muster_type_bytes(p->type);
    plan_pieces(p, mine->elements);
    r = allocate(p, err);
    for (size_t start = 0; r == 0 && start < mine->elements; start += p->piece) {
        size_t left = mine->elements - start, length = left < p->piece ? left : p->piece;
        const char *first = (const char *)parts + start * unit;
        sum_own(p, parts, start, length, mine->elements);
        r = move_nodes(p, p->direct ? first : p->local, length, err);
        if (r == 0) {
            sum_slice(p, p->slice, slice_of(p, p->comm->rank, length).count,
                      mine->op == MUSTER_AVG ? (int)p->total : 1);
            r = gather_slices(p, (char *)out + start * unit, length, err);
        }
    }
    return r;
}

int muster_all_reduce_parts(struct muster_comm *comm, const void *parts, size_t first_part,
                            size_t num_parts, size_t total_parts, void *out, size_t count,
                            enum muster_type type, enum muster_op op, struct muster_err *err)
{
    int r = sized_check_err(err);
    r = r < 0 ? r : comm_check_own(comm, err);
    r = r < 0 ? r : check(parts, num_parts, total_parts, out, count, type, op, err);
    if (r < 0) {
        return r;
    }
    bool half = type == MUSTER_F16 || type == MUSTER_BF16;
    struct parts *p = calloc(1, sizeof *p);
    if (!p) {
        failure_close(comm, MUSTER_ENOMEM);
        return muster_fail(err, MUSTER_ENOMEM, "no memory for %zu parts", total_parts);
    }
    p->comm = comm;
    p->type = type;
    p->wide = half ? MUSTER_F32 : type;
    p->wide_bytes = muster_type_bytes(p->wide);
    p->total = total_parts;
    struct offer mine = {first_part, num_parts, total_parts, count, (uint64_t)type, (uint64_t)op};
    struct inside place;
    inside_enter(&place, comm, INSIDE_SEVERAL);
    use_enter(&comm->use, COMM_IN_SEVERAL);
    r = sum_pieces(p, parts, out, &mine, err);
    if (r == MUSTER_ENOMEM) {
        failure_close(comm, r); /* the others must not wait for us */
    }
    use_leave(&comm->use, COMM_IN_SEVERAL);
    inside_leave(&place);
    release(p);
    free(p);
    return r;
}
