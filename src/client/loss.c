/* See loss.h. */
#include "client/loss.h"

#include "client/obey.h"
#include "client/report.h"
#include "comm/state/peers.h"

/* Returns the member that is lost according to the communicator, or to the attempt to form one; 0:
 * no member is named. A peer that has closed the communicator is alive. ended: its kernel has ended
 * the connection, it was not only silent. */
static uint64_t find_lost(const struct muster_elastic *job, int code, int rank, bool *ret_ended)
{
    enum muster_peer_state peers[MUSTER_MAX_RANKS];
    const struct generation *g = job->mine;
    *ret_ended = false;
    if (job->comm && muster_comm_query(job->comm, NULL, peers, NULL) == 0) {
        for (int r = 0; r < g->size; r++) {
            if (peers[r] == MUSTER_PEER_DEAD || peers[r] == MUSTER_PEER_SUSPECTED) {
                *ret_ended = peers[r] == MUSTER_PEER_DEAD;
                return g->incarnations[r];
            }
        }
    }
    bool named = code != MUSTER_EABORTED && rank >= 0 && rank < g->size && rank != g->rank;
    return named ? g->incarnations[rank] : 0;
}

/* Reports the processes that were ended because they were silent: the coordinator sees only that a
 * signal has ended them. */
static void tell_of_silent(struct muster_elastic *job)
{
    for (int r = 0; job->comm && r < job->mine->size; r++) {
        int64_t silent_ms = peers_ended_after_ms(job->comm, r);
        if (silent_ms > 0) {
            report_silent(job, job->mine->incarnations[r], silent_ms);
        }
    }
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
        bool ended = false;
        uint64_t lost = is_of_others(code) ? find_lost(job, code, failure->rank, &ended) : 0;
        tell_of_silent(job);
        obey_lost(job, lost, ended);
        obey_abort(job);
    }
    return is_of_others(code) ? 0 : muster_fail(err, code, "%s", failure->text);
}
