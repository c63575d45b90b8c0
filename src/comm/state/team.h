/* The teams of a communicator; see team.c. Layer: comm. */
#pragma once

#include "comm/state/state.h"

/* Called after the peers are placed; lowest[r] is the lowest rank on r's host. Returns false if
 * there is no memory. */
bool team_init(struct muster_comm *comm, const int *lowest);
void team_done(struct muster_comm *comm);
