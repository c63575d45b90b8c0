/* Small rooted calls on one host. A rank that only sends does not wait for the ranks that receive.
 * Layer: comm; see rooted.c. */
#pragma once

#include "comm/state/state.h"

/* Whether a call takes this way; all ranks decide alike. */
bool rooted_fits(const struct muster_comm *comm, const struct prepared *call);
void rooted_start(struct task *task);
/* Called when this rank makes no more calls and none is under way. Compares the last calls of its
 * neighbours that no call has compared. A difference can only be reported by a line on stderr,
 * which is printed if notices were asked for. */
void rooted_end(struct muster_comm *comm);
