/* All-reduce of the smallest vectors on one host. Layer: comm; see small.c. */
#pragma once

#include "comm/state/state.h"

void small_start(struct muster_comm *comm, struct task *task);
/* A fast path: see fast_path.h. */
int small_run(struct muster_comm *comm, const void *in, void *out, struct muster_err *err);
