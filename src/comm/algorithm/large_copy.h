/* Collectives that copy large blocks between ranks of one host, in one copy or in two. Layer:
 * comm; see large_copy.c. */
#pragma once

#include "comm/algorithm/way.h"

/* Whether a call takes this way; all ranks decide alike. */
bool large_copy_fits(const struct muster_comm *comm, const struct prepared *call);
void large_copy_start(struct muster_comm *comm, struct task *task, enum schedule_pattern pattern);
