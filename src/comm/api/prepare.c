/* Checks a public call and makes a prepared call of it. What is computed here is not computed
 * again later, and no other file of this library reads a struct muster_call.
 *
 * Layer: comm. Memory: the caller's. Thread: the one that starts calls.
 */
#include "comm/api/prepare.h"

#include "comm/health/quiesce.h"
#include "comm/state/call_log.h"
#include "comm/state/types.h"

/* With at most this many elements, the data of all ranks together fits into memory, whatever the
 * type is. */
static const size_t surely_allowed = (size_t)PTRDIFF_MAX / sizeof(double) / MUSTER_MAX_RANKS;

static int check_open(const struct muster_comm *comm, struct muster_err *err)
{
    int r = comm_check_own(comm, err);
    int closed = r < 0 ? 0 : phase_code(&comm->life);
    if (closed) {
        quiesce_wait(comm);
        r = muster_fail(err, MUSTER_EABORTED, "this communicator was closed: %s",
                        muster_code_text(closed));
    }
    return r;
}

/* Takes the fields that every call has. */
static inline void take_fields(const struct muster_call *call, struct prepared *ret)
{
    ret->kind = call->kind;
    ret->type = call->type;
    ret->op = call->op;
    ret->peer = call->peer;
    ret->tag = call->tag;
    ret->in = call->in;
    ret->out = call->out;
    ret->divisor = 1;
    ret->kernels = (struct reduce_kernels){0};
}

/* Takes the fields that this kind of call has, whatever the other fields hold. */
static void take_own_fields(const struct muster_call *call, const struct types_kind *kind,
                            struct prepared *ret)
{
    bool out_counts = kind->counts != TYPES_NO_COUNTS,
         in_counts = kind->counts == TYPES_BOTH_COUNTS;
    take_fields(call, ret);
    ret->rooted = kind->rooted;
    ret->in_counts = in_counts ? call->in_counts : NULL;
    ret->out_counts = out_counts ? call->out_counts : NULL;
    bool counted = call->kind != MUSTER_BARRIER && !ret->in_counts && !ret->out_counts;
    ret->count = counted ? call->count : 0;
    ret->unit = 1;
}

static int find_elements(const struct muster_comm *comm, const struct types_kind *kind,
                         struct prepared *call, struct muster_err *err)
{
    call->unit = muster_type_bytes(call->type);
    if (call->unit == 0) {
        return muster_fail(err, MUSTER_EINVAL, "there is no type %d", (int)call->type);
    }
    if (kind->reduces) {
        call->kernels = reduce_find_kernels(call->type, call->op);
        call->divisor = call->op == MUSTER_AVG ? comm->size : 1;
        if (!types_has_op(call->op)) {
            return muster_fail(err, MUSTER_EINVAL, "there is no operation %d", (int)call->op);
        }
        if (!call->kernels.reduce) {
            return muster_fail(err, MUSTER_EINVAL, "%s of %s is not defined",
                               muster_op_name(call->op), muster_type_name(call->type));
        }
    }
    return 0;
}

/* The elements that a rank passes in and gets; SIZE_MAX: at least this many. */
struct elements {
    size_t in, out;
};

static int check_room(const struct muster_comm *comm, const struct prepared *call,
                      struct elements elements, struct muster_err *err)
{
    if (call->kind == MUSTER_ALL_TO_ALL && !call->in_counts != !call->out_counts) {
        return muster_fail(err, MUSTER_EINVAL,
                           "all_to_all: of in_counts and out_counts one is NULL");
    }
    if (elements.in <= surely_allowed && elements.out <= surely_allowed) {
        return 0; /* saves two divisions in a call of some tens of nanoseconds */
    }
    size_t limit = (size_t)PTRDIFF_MAX / call->unit / (size_t)comm->size;
    if (elements.in > limit || elements.out > limit) {
        return muster_fail(err, MUSTER_EINVAL, "%s of %zu elements is more than memory can hold",
                           types_kind_name(call->kind),
                           elements.in > elements.out ? elements.in : elements.out);
    }
    return 0;
}

static int check_peer(const struct muster_comm *comm, const struct types_kind *kind,
                      const struct prepared *call, struct muster_err *err)
{
    bool message = prepared_is_message(call), receives = call->kind == MUSTER_RECV;
    bool any = receives && call->peer == MUSTER_ANY_SOURCE;
    bool named = kind->rooted || (message && !any);
    if (named && (call->peer < 0 || call->peer >= comm->size)) {
        return muster_fail(err, MUSTER_EINVAL, "%s: there is no rank %d in a world of %d",
                           types_kind_name(call->kind), call->peer, comm->size);
    }
    bool any_tag = receives && call->tag == MUSTER_ANY_TAG;
    if (message && call->tag < 0 && !any_tag) {
        return muster_fail(err, MUSTER_EINVAL, "%s: tag %d is negative",
                           types_kind_name(call->kind), call->tag);
    }
    return 0;
}

static bool needs(enum types_need need, bool root)
{
    return need == TYPES_ALL || (need == TYPES_ROOT && root);
}

static int check_buffers(const struct muster_comm *comm, const struct types_kind *kind,
                         const struct prepared *call, struct elements elements,
                         struct muster_err *err)
{
    bool root = comm->rank == call->peer;
    size_t in = call->kind == MUSTER_ALL_GATHER && call->out_counts ? call->out_counts[comm->rank]
                                                                    : elements.in;
    if ((needs(kind->in, root) && in > 0 && !call->in) ||
        (needs(kind->out, root) && elements.out > 0 && !call->out)) {
        return muster_fail(err, MUSTER_EINVAL, "%s: a buffer is NULL", types_kind_name(call->kind));
    }
    return 0;
}

static int check(const struct muster_comm *comm, const struct types_kind *kind,
                 struct prepared *call, struct muster_err *err)
{
    int r = find_elements(comm, kind, call, err);
    if (r < 0) {
        return r;
    }
    struct elements elements = {
        call->in_counts ? types_total(call->in_counts, comm->size) : call->count,
        call->out_counts ? types_total(call->out_counts, comm->size) : call->count};
    r = check_room(comm, call, elements, err);
    r = r < 0 ? r : check_peer(comm, kind, call, err);
    return r < 0 ? r : check_buffers(comm, kind, call, elements, err);
}

static int lane_of(const struct prepared *call)
{
    if (prepared_is_message(call)) {
        return LANE_MESSAGES;
    }
    bool small = call->bytes <= SIDE_BYTES;
    bool overtakes = call->kind == MUSTER_ALL_GATHER && !call->out_counts && small;
    return overtakes ? LANE_SIDE : LANE_MAIN;
}

/* Prepares a call of any kind, and finds any fault in it. */
static __attribute__((noinline)) int prepare_any(const struct muster_comm *comm,
                                                 const struct muster_call *call,
                                                 struct prepared *ret, struct muster_err *err)
{
    int r = check_open(comm, err);
    if (r < 0) {
        return r;
    }
    const struct types_kind *kind = types_find_kind(call->kind);
    if (!kind) {
        return muster_fail(err, MUSTER_EINVAL, "there is no collective %d", (int)call->kind);
    }
    take_own_fields(call, kind, ret);
    r = call->kind == MUSTER_BARRIER ? 0 : check(comm, kind, ret, err);
    if (r < 0) {
        return r;
    }
    ret->bytes = ret->count * ret->unit;
    ret->lane = lane_of(ret);
    call_log_describe(ret, kind, comm->size);
    return 0;
}

/* Whether this is a message from or to one named rank, without a fault, except perhaps in its type.
 */
static bool is_plain_message(const struct muster_comm *comm, const struct muster_call *call)
{
    bool receives = call->kind == MUSTER_RECV;
    const void *buffer = receives ? call->out : call->in;
    return (receives || call->kind == MUSTER_SEND) && (unsigned)call->peer < (unsigned)comm->size &&
           (call->tag >= 0 || (receives && call->tag == MUSTER_ANY_TAG)) &&
           call->count <= surely_allowed && (buffer || call->count == 0);
}

/* Does the same as prepare_any for such a message, in a third of the instructions. */
static void take_message(const struct muster_call *call, size_t unit, struct prepared *ret)
{
    take_fields(call, ret);
    ret->count = ret->total = call->count;
    ret->in_counts = ret->out_counts = NULL;
    ret->rooted = false;
    ret->lane = LANE_MESSAGES;
    ret->unit = unit;
    ret->bytes = call->count * unit;
    ret->shape = call_log_shape(call->kind, call->type);
}

int prepare_call(const struct muster_comm *comm, const struct muster_call *call,
                 struct prepared *ret, struct muster_err *err)
{
    bool open = comm->process == heartbeat_process() && phase_code(&comm->life) == 0;
    size_t unit = open && is_plain_message(comm, call) ? types_bytes(call->type) : 0;
    if (unit > 0) {
        take_message(call, unit, ret);
        return 0;
    }
    return prepare_any(comm, call, ret, err);
}
