/* The progress thread. Layer: comm; see background.c. */
#pragma once

#include "comm/state/state.h"

/* Has it step this communicator's lanes until they are empty; starts it when it is not there. */
int background_add(struct muster_comm *comm, struct muster_err *err);
/* There may be something to do. */
void background_wake(void);
/* When it returns, the progress thread has nothing to do with comm any more. */
void background_forget(struct muster_comm *comm);
