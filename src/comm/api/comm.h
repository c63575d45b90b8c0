/* A communicator made, and what any file may ask of it. Layer: comm; see comm.c. */
#pragma once

#include "comm/state/state.h"

/* An empty communicator of these ranks; hosts[r] is the lowest rank on r's host. */
struct muster_comm *comm_new(int rank, int size, const int *hosts,
                             const struct muster_comm_options *options);
