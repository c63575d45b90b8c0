/* Tasks that send and receive. Layer: comm; see message.c. */
#pragma once

#include "comm/state/state.h"

/* Once the host's memory is there. */
int message_init(struct muster_comm *comm, struct muster_err *err);
void message_start(struct task *task);
/* Reads what has come from all ranks; its lane's holder calls it, or a task that is in no lane.
 * True: something has. */
bool message_read(struct muster_comm *comm);
void message_free(struct muster_comm *comm);
