/* Small rooted calls on one host. A rank that only sends does not wait for the ranks that receive.
 * Layer: comm; see rooted.c. */
#pragma once

#include "comm/state/state.h"

/* Whether a call takes this way; all ranks decide alike. */
bool rooted_fits(const struct muster_comm *comm, const struct prepared *call);
void rooted_start(struct task *task);
/* This rank makes no more calls, and none is under way. What its neighbours called last, and no
 * call has compared, can be told to nobody else: it is a line on stderr, where those were asked
 * for. */
void rooted_end(struct muster_comm *comm);
