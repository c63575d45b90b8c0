/* All-reduce in memory that all ranks see. Layer: comm; see direct.c. */
#pragma once

#include "comm/algorithm/way.h"

/* otherwise: takes the task over where a long buffer turns out to be private. */
void direct_start(struct muster_comm *comm, struct task *task, direct_otherwise_fn otherwise);
/* What can be said of a call before it begins. */
void direct_prepare(const struct muster_comm *comm, const struct muster_call *call,
                    direct_otherwise_fn otherwise, struct direct *ret);
/* A quick way: quick.h. */
int direct_run(struct muster_comm *comm, const void *in, void *out, struct muster_err *err);
