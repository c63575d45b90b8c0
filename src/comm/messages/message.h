/* Tasks that send and receive. Layer: comm; see message.c. */
#pragma once

#include "comm/state/state.h"

int message_init(struct muster_comm *comm, struct muster_err *err);
void message_start(struct task *task);
void message_free(struct muster_comm *comm);
