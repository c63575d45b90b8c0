/* All-reduce of large vectors in private memory. Layer: comm; see ring.c. */
#pragma once

#include "comm/state/state.h"

void ring_start(struct muster_comm *comm, struct task *task, size_t block_bytes);
