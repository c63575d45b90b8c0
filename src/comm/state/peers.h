/* What is known of the other ranks: alive, dead, suspected or closed. Layer: comm; see peers.c. */
#pragma once

#include <assert.h>

#include "comm/state/state.h"

/* The control words of a rank of this host. */
static inline struct control *peers_control(const struct muster_comm *comm, int rank)
{
    assert(comm->peers[rank].local >= 0);
    return segment_control(&comm->segment, comm->peers[rank].local);
}

/* A suspected rank of this host. True once the kernel has confirmed its death: from then on it
 * writes nothing. */
bool peers_kill(struct muster_comm *comm, int rank);
/* A rank of this host was silent for so long, and its process was ended for that; 0: it was not. */
int64_t peers_ended_after_ms(const struct muster_comm *comm, int rank);
/* A debugger has hold of that rank's heartbeat thread: that it is silent says nothing. Of a rank of
 * this host whose process ids mean the same here; of any other false. Reads /proc. */
bool peers_is_traced(const struct muster_comm *comm, int rank);
/* Whether a debugger holds this rank; called on its heartbeat thread. */
bool peers_this_thread_is_traced(void);
/* The rank whose end we know, as a word for others: 1 + a rank that is proven dead, else the
 * negative of 1 + one that is suspected; 0: none. */
int peers_failed_rank(const struct muster_comm *comm);
/* Another rank's word about a third, unless it is of this host: of those we know better. */
void peers_believe(struct muster_comm *comm, int failed_rank);
enum muster_peer_state peers_state(const struct muster_comm *comm, int rank);
