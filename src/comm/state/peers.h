/* What is known of the other ranks: alive, dead, suspected or closed. Layer: comm; see peers.c. */
#pragma once

#include <assert.h>

#include "comm/state/state.h"

/* Returns the control words of a rank of this host. */
static inline struct control *peers_control(const struct muster_comm *comm, int rank)
{
    assert(comm->peers[rank].local >= 0);
    return segment_control(&comm->segment, comm->peers[rank].local);
}

/* Kills a suspected rank of this host. Returns true if the kernel has confirmed its death: then it
 * writes nothing any more. */
bool peers_kill(struct muster_comm *comm, int rank);
/* Returns how long a rank of this host was silent, if its process was killed for that; 0: it was
 * not. */
int64_t peers_ended_after_ms(const struct muster_comm *comm, int rank);
/* Whether a debugger holds that rank's heartbeat thread; then its silence means nothing. Only for a
 * rank of this host whose process ids mean the same here, otherwise false. Reads /proc. */
bool peers_is_traced(const struct muster_comm *comm, int rank);
/* Whether a debugger holds this rank; called on its heartbeat thread. */
bool peers_this_thread_is_traced(void);
/* Returns the failed rank that this rank knows of, as a word for others: 1 + the rank if it is
 * proven dead, or the negative of that if it is suspected; 0: none. */
int peers_failed_rank(const struct muster_comm *comm);
/* Takes another rank's word about a third rank, unless that rank is of this host: this rank knows
 * better about those. */
void peers_believe(struct muster_comm *comm, int failed_rank);
enum muster_peer_state peers_state(const struct muster_comm *comm, int rank);
