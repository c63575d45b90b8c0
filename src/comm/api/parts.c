/* Sums logical parts along one fixed tree. Each rank sums the largest nodes of the tree that its
 * parts fill. A rank that has the nodes of all ranks goes on from there to the root. The additions
 * and their order are always the same, whatever the number of ranks that share the parts.
 *
 * Few elements: all ranks gather the nodes, and each sums them all. Many: each rank gets the nodes
 * of its slice of the elements, sums these, and the slices are gathered. Piece by piece, so that
 * memory stays bounded.
 *
 * How a piece is summed is in parts_sum.c.
 *
 * Layer: comm. Memory: freed before returning. Thread: the caller's.
 */
#include "comm/api/parts_sum.h"
#include "comm/health/failure.h"
#include "comm/progress/inside.h"
#include "comm/system/sized.h"

#include <stdlib.h>
#include <string.h>

enum {
    GATHER_BYTES = 64 * 1024, /* bytes of all nodes: up to this size all ranks sum all elements */
    PIECE_BYTES = 8 << 20,    /* bytes of all nodes that are moved at once, at most */
    PIECE_ELEMENTS = 1 << 16, /* elements that are moved at once, at most */
};

/* What a rank passes: its parts, and what must be equal on all ranks. */
struct offer {
    uint64_t first;
    uint64_t count;
    uint64_t total;
    uint64_t elements;
    uint64_t type;
    uint64_t op;
};

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

/* Sends this rank's offer to all, and receives theirs. */
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

/* Decides what one piece contains and how it is moved, in the same way on all ranks. */
static void plan_pieces(struct parts *p, size_t elements)
{
    struct tree_span cover[TREE_MAX_COVER];
    for (int r = 0; r < p->comm->size; r++) {
        p->num_nodes[r] = tree_cover(p->total, p->spans[r], cover);
        p->all_nodes += p->num_nodes[r];
    }
    size_t column = p->all_nodes * p->wide_bytes, most = PIECE_BYTES / column;
    p->gathers = p->comm->size == 1 || elements <= GATHER_BYTES / column;
    most = p->gathers              ? PARTS_CHUNK
           : most > PIECE_ELEMENTS ? PIECE_ELEMENTS
           : most < PARTS_CHUNK    ? PARTS_CHUNK
                                   : most;
    p->piece = elements < most ? elements : most;
    p->direct = p->spans[p->comm->rank].count == 1 && p->wide == p->type;
}

static int allocate(struct parts *p, struct muster_err *err)
{
    size_t chunk = PARTS_CHUNK * p->wide_bytes, mine = p->num_nodes[p->comm->rank];
    size_t leaves = p->spans[p->comm->rank].count;
    size_t slice = parts_slice_of(p, 0, p->piece).count;
    p->nodes = calloc(p->all_nodes + 1, sizeof *p->nodes);
    p->leaves = calloc(leaves + 1, sizeof *p->leaves);
    p->local = malloc((mine * p->piece + 1) * p->wide_bytes);
    p->gathered = malloc((p->all_nodes * slice + 1) * p->wide_bytes);
    p->slice = malloc((slice + 1) * muster_type_bytes(p->type));
    p->widened = malloc(p->wide == p->type ? 1 : (leaves + 1) * chunk);
    p->root = malloc(chunk);
    p->stack = malloc(PARTS_DEPTH * chunk);
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

/* Moves the nodes so that each rank gets those that it sums. */
static int move_nodes(struct parts *p, const char *nodes, size_t length, struct muster_err *err)
{
    size_t in[MUSTER_MAX_RANKS], out[MUSTER_MAX_RANKS];
    size_t own = parts_slice_of(p, p->comm->rank, length).count;
    for (int r = 0; r < p->comm->size; r++) {
        in[r] = p->num_nodes[p->comm->rank] * parts_slice_of(p, r, length).count;
        out[r] = p->num_nodes[r] * own;
    }
    return p->gathers ? muster_all_gatherv(p->comm, nodes, p->gathered, out, p->wide, err)
                      : muster_all_to_allv(p->comm, nodes, in, p->gathered, out, p->wide, err);
}

static int gather_slices(struct parts *p, char *out, size_t length, struct muster_err *err)
{
    size_t counts[MUSTER_MAX_RANKS];
    if (p->gathers) {
        memcpy(out, p->slice, length * muster_type_bytes(p->type));
        return 0;
    }
    for (int r = 0; r < p->comm->size; r++) {
        counts[r] = parts_slice_of(p, r, length).count;
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
        parts_sum_own(p, parts, start, length, mine->elements);
        r = move_nodes(p, p->direct ? first : p->local, length, err);
        if (r == 0) {
            parts_sum_slice(p, p->slice, parts_slice_of(p, p->comm->rank, length).count,
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
        failure_close(comm, r); /* the others must not wait for this rank */
    }
    use_leave(&comm->use, COMM_IN_SEVERAL);
    inside_leave(&place);
    release(p);
    free(p);
    return r;
}
