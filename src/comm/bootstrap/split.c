/* Divides a communicator by colour: its members tell each other where they can be reached, and
 * form new communicators.
 *
 * Layer: comm. Memory: freed before returning. Thread: the caller's.
 */
#include "comm/bootstrap/form.h"
#include "comm/endpoint/endpoint.h"
#include "comm/health/failure.h"
#include "comm/state/peers.h"
#include "comm/system/deadline.h"
#include "comm/system/sized.h"

#include <assert.h>
#include <stdlib.h>

struct split {
    int32_t color;
    int32_t key;
    int32_t rank;
    int32_t zero;
    struct muster_member member;
};

static int by_key(const void *left, const void *right)
{
    const struct split *a = left, *b = right;
    return a->key != b->key    ? (a->key < b->key ? -1 : 1)
           : a->rank < b->rank ? -1
                               : a->rank > b->rank;
}

/* What splitting needs, and the members of this rank's colour. */
struct splitting {
    struct muster_comm *comm;
    int32_t color;
    struct muster_comm_options options;
    struct muster_endpoint *endpoint;
    struct split *all;
    struct muster_member *members;
    int *ranks; /* the members' ranks in comm */
    int num;
    int index; /* this rank's index in members */
};

/* Chooses the ranks of this rank's colour, in order. */
static void choose_members(struct splitting *s)
{
    int size = s->comm->size;
    qsort(s->all, (size_t)size, sizeof *s->all, by_key);
    for (int i = 0; i < size; i++) {
        if (s->all[i].color == s->color) {
            s->index = s->all[i].rank == s->comm->rank ? s->num : s->index;
            s->ranks[s->num] = s->all[i].rank;
            s->members[s->num++] = s->all[i].member;
        }
    }
    assert(s->num > 0 && s->ranks[s->index] == s->comm->rank); /* this rank is of its own colour */
}

/* A rank that could not go on has closed the communicator that is split. No rank frees that
 * communicator in good order before all ranks of a colour have come. */
static int check_members(void *context, struct muster_err *err)
{
    const struct splitting *s = context;
    for (int i = 0; i < s->num; i++) {
        int rank = s->ranks[i];
        enum muster_peer_state state = peers_state(s->comm, rank);
        if (state != MUSTER_PEER_ALIVE) {
            bool closed = state == MUSTER_PEER_CLOSED;
            int code = closed ? MUSTER_EABORTED : MUSTER_EPEERDEAD;
            muster_fail(err, code, "rank %d %s while a communicator was split", rank,
                        closed ? "gave up" : "died");
            if (err) {
                err->rank = rank;
            }
            return code;
        }
    }
    return 0;
}

static int prepare(struct splitting *s, struct muster_err *err)
{
    size_t size = (size_t)s->comm->size;
    int r = endpoint_open(NULL, NULL, s->options.transport, &s->endpoint, err);
    if (r < 0) {
        return r;
    }
    s->all = calloc(size, sizeof *s->all);
    s->members = calloc(size, sizeof *s->members);
    s->ranks = calloc(size, sizeof *s->ranks);
    return s->all && s->members && s->ranks
               ? 0
               : muster_fail(err, MUSTER_ENOMEM, "no memory for %zu members", size);
}

static int form_part(struct splitting *s, int key, struct muster_comm **ret, struct muster_err *err)
{
    assert(s->endpoint && s->all && s->members && s->ranks);
    struct split ours = {.color = s->color, .key = key, .rank = s->comm->rank};
    muster_endpoint_member(s->endpoint, &ours.member);
    int r = muster_all_gather(s->comm, &ours, s->all, sizeof ours, MUSTER_U8, err);
    if (r < 0) {
        return r;
    }
    if (s->color < 0) {
        *ret = NULL;
        return 0;
    }
    choose_members(s);
    struct forming_watch watch = {check_members, s};
    return form_comm(s->endpoint, s->members, s->num, s->index, s->comm->generation,
                     deadline_after_ms(s->options.timeout_ms), &s->options, &watch, ret, err);
}

/* Whether the error concerns this rank alone; then the others must not wait for it. */
static bool is_local(int r)
{
    return r == MUSTER_ENOMEM || r == MUSTER_EOS;
}

int muster_comm_split(struct muster_comm *comm, int color, int key, struct muster_comm **ret,
                      struct muster_err *err)
{
    int own = sized_check_err(err);
    own = own < 0 ? own : comm_check_own(comm, err);
    if (own < 0) {
        return own; /* closes nothing: a child does not have the segment */
    }
    struct splitting s = {.comm = comm, .color = color, .options = MUSTER_COMM_OPTIONS_INIT};
    s.options.transport = comm->transport;
    s.options.notice_ms = comm->notice_ms > 0 ? comm->notice_ms : -1;
    s.options.timeout_ms = atomic_load(&comm->timeout_ms);
    s.options.heartbeat_timeout_ms = comm->heartbeat_timeout_ms;
    s.options.interrupted = comm->interrupted;
    s.options.interrupted_context = comm->interrupted_context;
    int r = prepare(&s, err);
    if (r < 0) {
        failure_close(comm, r);
    } else {
        r = form_part(&s, key, ret, err);
        if (is_local(r)) {
            failure_close(comm, r);
        }
    }
    free(s.all);
    free(s.members);
    free(s.ranks);
    muster_endpoint_close(s.endpoint);
    return r;
}
