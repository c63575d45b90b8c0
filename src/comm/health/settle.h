/* Around writing into other ranks' memory of muster_comm_alloc. Layer: comm; see settle.c. */
#pragma once

#include "comm/state/state.h"

/* Said some time before, allowed when then no rank has closed (-1, else one that has), and done. */
void settle_intend(struct muster_comm *comm);
int settle_find_closed(const struct muster_comm *comm);
void settle_wrote(struct muster_comm *comm);
/* By the thread that closed the communicator: waits until nobody writes into our memory. */
void settle(struct muster_comm *comm);
/* By others that saw it closed. */
void settle_wait(const struct muster_comm *comm);
