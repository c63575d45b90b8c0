/* Around writing into other ranks' memory of muster_comm_alloc. Layer: comm; see quiesce.c. */
#pragma once

#include "comm/state/state.h"

/* Said some time before, allowed when then no rank has closed (-1, else one that has), and done. */
void quiesce_write_begin(struct muster_comm *comm);
int quiesce_find_closed(const struct muster_comm *comm);
void quiesce_write_end(struct muster_comm *comm);
/* By the thread that closed the communicator: waits until nobody writes into our memory. */
void quiesce_memory(struct muster_comm *comm);
/* By others that saw it closed. */
void quiesce_wait(const struct muster_comm *comm);
