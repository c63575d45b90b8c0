/* The progress thread. Layer: comm; see background.c. */
#pragma once

#include "comm/state/state.h"

/* Lets the progress thread step this communicator's lanes until they are empty; starts the thread
 * if it does not run. */
int background_add(struct muster_comm *comm, struct muster_err *err);
/* Called when a thread that stepped the lanes itself, as one of comm->helpers, stops: its call
 * ended, or it gave up waiting. */
void background_helped(struct muster_comm *comm, bool ended);
/* When it returns, the progress thread does not use comm any more. */
void background_forget(struct muster_comm *comm);
