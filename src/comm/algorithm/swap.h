/* All-reduce of two ranks in private memory. Layer: comm; see swap.c. */
#pragma once

#include "comm/algorithm/way.h"

void swap_start(struct muster_comm *comm, struct task *task, size_t block_bytes);
/* What can be said of a call before it begins. */
void swap_prepare(struct muster_comm *comm, const struct muster_call *call, size_t block_bytes,
                  struct swap *ret);
/* A quick way: quick.h. */
int swap_run(struct muster_comm *comm, const void *in, void *out, struct muster_err *err);
