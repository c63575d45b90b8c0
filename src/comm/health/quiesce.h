/* Guards writes into other ranks' memory of muster_comm_alloc: after a communicator has closed,
 * nobody writes there. Layer: comm; see quiesce.c. */
#pragma once

#include "comm/state/state.h"

/* A writer calls begin, writes only if find_closed returns -1 (otherwise it returns a rank that has
 * closed), and calls end. */
void quiesce_write_begin(struct muster_comm *comm);
int quiesce_find_closed(const struct muster_comm *comm);
void quiesce_write_end(struct muster_comm *comm);
/* Called by the thread that closed the communicator. Waits until no process writes into our memory.
 */
void quiesce_memory(struct muster_comm *comm);
/* Called by other threads, which see that the communicator is closed. Waits for quiesce_memory. */
void quiesce_wait(const struct muster_comm *comm);
