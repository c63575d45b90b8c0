/* The progress thread. Layer: comm; see background.c. */
#pragma once

#include "comm/state/state.h"

/* Has it step this communicator's lanes until they are empty; starts it when it is not there. */
int background_add(struct muster_comm *comm, struct muster_err *err);
/* A thread that stepped the lanes itself, as one of comm->helpers, no longer does: its call ended,
 * or is given up. */
void background_helped(struct muster_comm *comm, bool ended);
/* When it returns, the progress thread has nothing to do with comm any more. */
void background_forget(struct muster_comm *comm);
