/* Makes a communicator, and has the functions that any file may call on one. Layer: comm; see
 * comm.c. */
#pragma once

#include "comm/state/state.h"

/* Makes an empty communicator of these ranks; hosts[r] is the lowest rank on r's host. */
struct muster_comm *comm_new(int rank, int size, const int *hosts,
                             const struct muster_comm_options *options);
