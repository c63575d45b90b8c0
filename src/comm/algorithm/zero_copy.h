/* All-reduce in memory that all ranks can access. Layer: comm; see zero_copy.c. */
#pragma once

#include "comm/algorithm/way.h"

/* fallback: takes the task over if a long buffer turns out to be private. */
void zero_copy_start(struct muster_comm *comm, struct task *task, zero_copy_fallback_fn fallback);
/* Fills in what is known about a call before it begins. */
void zero_copy_prepare(const struct muster_comm *comm, const struct prepared *call,
                       zero_copy_fallback_fn fallback, struct zero_copy *ret);
/* A fast path: see fast_path.h. */
int zero_copy_run(struct muster_comm *comm, const void *in, void *out, struct muster_err *err);
