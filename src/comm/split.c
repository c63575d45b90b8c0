/* A communicator divided by colour: its members tell each other where they are, and form anew.
 *
 * Layer: comm. Memory: freed before returning. Thread: the caller's.
 */
#include "comm/deadline.h"
#include "comm/endpoint.h"
#include "comm/failure.h"
#include "comm/form.h"

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

/* Those of our colour, in order; their number, and which of them we are. */
static int choose_members(struct split *all, const struct muster_comm *comm, int color,
                          struct muster_member *members, int *ret_index)
{
    int num = 0;
    qsort(all, (size_t)comm->size, sizeof *all, by_key);
    for (int i = 0; i < comm->size; i++) {
        if (all[i].color == color) {
            *ret_index = all[i].rank == comm->rank ? num : *ret_index;
            members[num++] = all[i].member;
        }
    }
    return num;
}

int muster_comm_split(struct muster_comm *comm, int color, int key, struct muster_comm **ret,
                      struct muster_err *err)
{
    struct muster_comm_options o;
    muster_comm_options_default(&o);
    o.timeout_ms = atomic_load(&comm->timeout_ms);
    o.silence_ms = comm->silence_ms;
    o.interrupted = comm->interrupted;
    o.interrupted_context = comm->interrupted_context;
    struct muster_endpoint *endpoint;
    int rc = endpoint_open(NULL, NULL, NULL, &endpoint, err);
    if (rc < 0) {
        failure_close(comm, rc); /* the others must not wait for us */
        return rc;
    }
    struct split ours = {.color = color, .key = key, .rank = comm->rank};
    muster_endpoint_member(endpoint, &ours.member);
    struct split *all = calloc((size_t)comm->size, sizeof *all);
    struct muster_member *members = calloc((size_t)comm->size, sizeof *members);
    rc = all && members ? muster_all_gather(comm, &ours, all, sizeof ours, MUSTER_U8, err)
                        : muster_fail(err, MUSTER_ENOMEM, "no memory for %d members", comm->size);
    if (rc == 0 && color < 0) {
        *ret = NULL;
    } else if (rc == 0) {
        int index = 0;
        int num = choose_members(all, comm, color, members, &index);
        rc = form_comm(endpoint, members, num, index, comm->generation,
                       deadline_after_ms(o.timeout_ms), &o, ret, err);
    }
    free(all);
    free(members);
    muster_endpoint_close(endpoint);
    return rc;
}
