/* All-reduce of two ranks in private memory. Layer: comm; see pairwise.c. */
#pragma once

#include "comm/algorithm/way.h"

void pairwise_start(struct muster_comm *comm, struct task *task, size_t block_bytes);
/* Fills in what is known about a call before it begins. */
void pairwise_prepare(struct muster_comm *comm, const struct prepared *call, size_t block_bytes,
                      struct pairwise *ret);
/* A fast path: see fast_path.h. */
int pairwise_run(struct muster_comm *comm, const void *in, void *out, struct muster_err *err);
