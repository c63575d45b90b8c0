/* Runs a task on the calling thread. Layer: comm; see progress.c. */
#pragma once

#include "comm/state/state.h"

/* Steps a task to its end on the calling thread. */
int progress_run(struct muster_comm *comm, struct task *task, struct muster_err *err);
/* Waits until no other thread is inside a call of this closed communicator. */
void progress_drain(struct muster_comm *comm);
