/* Summing logical parts along one fixed tree. Each rank sums the largest nodes of the tree that its
 * parts fill, all ranks gather these, and each goes on from there to the root: the same additions
 * in the same order, however many ranks share the parts. Chunk by chunk, so that memory stays
 * bounded.
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

enum { CHUNK = 4096, DEPTH = 66 };

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
    struct tree_span spans[COMM_MAX_RANKS]; /* of all ranks */
    size_t num_nodes[COMM_MAX_RANKS];       /* that cover them */
    struct node *nodes;                     /* of all ranks */
    struct node *leaves;                    /* of this rank */
    char *local;                            /* this rank's nodes … */
    char *gathered;                         /* … and those of all */
    char *widened;                          /* this rank's parts */
    char *stack;                            /* sums of left children, by depth */
};

static void add(const struct parts *p, void *to, const void *a, const void *b, size_t count)
{
    const void *const both[2] = {a, b};
    reduce_find(p->wide, MUSTER_SUM)(to, both, 2, count, 1);
}

/* The sum of the node `span`, from nodes at *at on; each of them lies inside it. */
static void sum_node(const struct parts *p, struct tree_span span, const struct node **at, char *to,
                     size_t count, int depth)
{
    if ((*at)->span.first == span.first && (*at)->span.count == span.count) {
        memcpy(to, (*at)++->values, count * p->wide_bytes);
        return;
    }
    size_t left = tree_left(span.count);
    char *mine = p->stack + (size_t)depth * CHUNK * p->wide_bytes;
    sum_node(p, (struct tree_span){span.first, left}, at, mine, count, depth + 1);
    sum_node(p, (struct tree_span){span.first + left, span.count - left}, at, to, count, depth + 1);
    add(p, to, mine, to, count);
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

static void narrow(const struct parts *p, const char *from, char *to, size_t count, int divisor)
{
    const void *source = from;
    float *wide = (float *)(uintptr_t)from;
    if (divisor > 1) {
        reduce_find(p->wide, MUSTER_AVG)((void *)(uintptr_t)from, &source, 1, count, divisor);
    }
    for (size_t i = 0; i < count && p->wide != p->type; i++) {
        uint16_t half =
            p->type == MUSTER_F16 ? half_from_float(wide[i]) : bfloat_from_float(wide[i]);
        memcpy(to + i * sizeof half, &half, sizeof half);
    }
    if (p->wide == p->type) {
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
    struct offer all[COMM_MAX_RANKS];
    int rc =
        muster_all_gather(p->comm, mine, all, sizeof *mine / sizeof(uint64_t), MUSTER_I64, err);
    for (int r = 0; rc == 0 && r < p->comm->size; r++) {
        rc = compare(p, mine, &all[r], r, err);
        p->spans[r] = (struct tree_span){all[r].first, all[r].count};
    }
    return rc < 0 ? rc : check_cover(p, err);
}

static int allocate(struct parts *p, struct muster_err *err)
{
    size_t nodes = 0, mine = 0;
    struct tree_span cover[TREE_MAX_COVER];
    for (int r = 0; r < p->comm->size; r++) {
        p->num_nodes[r] = tree_cover(p->total, p->spans[r], cover);
        nodes += p->num_nodes[r];
        mine = r == p->comm->rank ? p->num_nodes[r] : mine;
    }
    size_t column = CHUNK * p->wide_bytes, leaves = p->spans[p->comm->rank].count;
    p->nodes = calloc(nodes + 1, sizeof *p->nodes);
    p->leaves = calloc(leaves + 1, sizeof *p->leaves);
    p->local = malloc((mine + 1) * column);
    p->gathered = malloc((nodes + 1) * column);
    p->widened = malloc((leaves + 1) * column);
    p->stack = malloc(DEPTH * column);
    return p->nodes && p->leaves && p->local && p->gathered && p->widened && p->stack
               ? 0
               : muster_fail(err, MUSTER_ENOMEM, "no memory for %zu parts", p->total);
}

static void release(struct parts *p)
{
    free(p->nodes);
    free(p->leaves);
    free(p->local);
    free(p->gathered);
    free(p->widened);
    free(p->stack);
}

/* ---- a chunk ---- */

/* Sums this rank's nodes for count elements of its parts, from element `start`. */
static void sum_own(struct parts *p, const char *parts, size_t start, size_t count, size_t stride)
{
    size_t unit = muster_type_bytes(p->type);
    struct tree_span mine = p->spans[p->comm->rank], cover[TREE_MAX_COVER];
    for (size_t i = 0; i < mine.count; i++) {
        char *to = p->widened + i * count * p->wide_bytes;
        widen(p, parts + (i * stride + start) * unit, to, count);
        p->leaves[i] = (struct node){{mine.first + i, 1}, to};
    }
    const struct node *at = p->leaves;
    size_t num = tree_cover(p->total, mine, cover);
    for (size_t n = 0; n < num; n++) {
        sum_node(p, cover[n], &at, p->local + n * count * p->wide_bytes, count, 0);
    }
}

static int sum_all(struct parts *p, size_t count, struct muster_err *err)
{
    size_t counts[COMM_MAX_RANKS], num = 0;
    for (int r = 0; r < p->comm->size; r++) {
        struct tree_span cover[TREE_MAX_COVER];
        size_t nodes = tree_cover(p->total, p->spans[r], cover);
        for (size_t n = 0; n < nodes; n++, num++) {
            p->nodes[num] = (struct node){cover[n], p->gathered + num * count * p->wide_bytes};
        }
        counts[r] = nodes * count;
    }
    int rc = muster_all_gatherv(p->comm, p->local, p->gathered, counts, p->wide, err);
    if (rc == 0) {
        const struct node *at = p->nodes;
        sum_node(p, (struct tree_span){0, p->total}, &at, p->local, count, 0);
    }
    return rc;
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

static int sum_chunks(struct parts *p, const void *parts, void *out, const struct offer *mine,
                      struct muster_err *err)
{
    int rc = gather_offers(p, mine, err);
    rc = rc < 0 ? rc : allocate(p, err);
    for (size_t start = 0; rc == 0 && start < mine->elements; start += CHUNK) {
        size_t left = mine->elements - start, length = left < CHUNK ? left : CHUNK;
        sum_own(p, parts, start, length, mine->elements);
        rc = sum_all(p, length, err);
        if (rc == 0) {
            narrow(p, p->local, (char *)out + start * muster_type_bytes(p->type), length,
                   mine->op == MUSTER_AVG ? (int)p->total : 1);
        }
    }
    return rc;
}

int muster_all_reduce_parts(struct muster_comm *comm, const void *parts, size_t first_part,
                            size_t num_parts, size_t total_parts, void *out, size_t count,
                            enum muster_type type, enum muster_op op, struct muster_err *err)
{
    int rc = sized_check_err(err);
    rc = rc < 0 ? rc : comm_check_own(comm, err);
    rc = rc < 0 ? rc : check(parts, num_parts, total_parts, out, count, type, op, err);
    if (rc < 0) {
        return rc;
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
    rc = sum_chunks(p, parts, out, &mine, err);
    if (rc == MUSTER_ENOMEM) {
        failure_close(comm, rc); /* the others must not wait for us */
    }
    use_leave(&comm->use, COMM_IN_SEVERAL);
    inside_leave(&place);
    release(p);
    free(p);
    return rc;
}
