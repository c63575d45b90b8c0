/* See loss.h. */
#include "client/loss.h"

#include "client/obey.h"

/* Whom the communicator, or the attempt to form one, says to be lost; 0: nobody is named. A peer
 * that has closed it lives. */
static uint64_t find_lost(const struct muster_elastic *job, int code, int rank)
{
    enum muster_peer_state peers[MUSTER_MAX_RANKS];
    const struct generation *g = job->mine;
    if (job->comm && muster_comm_query(job->comm, NULL, peers, NULL) == 0) {
        for (int r = 0; r < g->size; r++) {
            if (peers[r] == MUSTER_PEER_DEAD || peers[r] == MUSTER_PEER_SUSPECTED) {
                return g->incarnations[r];
            }
        }
    }
    bool named = code != MUSTER_EABORTED && rank >= 0 && rank < g->size && rank != g->rank;
    return named ? g->incarnations[rank] : 0;
}

static bool is_of_others(int code)
{
    return code == MUSTER_EPEERDEAD || code == MUSTER_EABORTED || code == MUSTER_EUNAVAIL ||
           code == MUSTER_ETIMEDOUT;
}

int loss_take(struct muster_elastic *job, int code, const struct muster_err *failure,
              struct muster_err *err)
{
    if (job->core.generation == job->mine->number) {
        obey_lost(job, is_of_others(code) ? find_lost(job, code, failure->rank) : 0);
        obey_abort(job);
    }
    return is_of_others(code) ? 0 : muster_fail(err, code, "%s", failure->text);
}
