/* All-reduce of large vectors in private memory. Layer: comm; see owner_reduce.c. */
#pragma once

#include "comm/state/state.h"

void owner_start(struct muster_comm *comm, struct task *task, size_t block_bytes);
