/* Lets ranks that know only their number find each other: declarations that the methods share.
 * Layer: comm. */
#pragma once

#include "comm/state/state.h"

struct meeting {
    const struct muster_comm_options *options;
    const char *name;
    int64_t deadline_ns;
    struct muster_member *members; /* of all ranks, filled in */
};

/* meet_port.c: rank 0 listens at the options' port, the others come there. */
int meet_at_port(struct meeting *m, struct muster_err *err);
