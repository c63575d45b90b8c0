/* Lets ranks that know only their number find each other: declarations that the methods share.
 * Layer: comm. */
#pragma once

#include "comm/state/state.h"

struct meeting {
    const struct muster_comm_options *options;
    const char *name;
    int64_t deadline_ns;
    struct muster_member *members; /* the members of all ranks; to be filled in */
};

/* Lets the ranks meet at the options' port, where rank 0 listens and the others connect
 * (meet_port.c). */
int meet_at_port(struct meeting *m, struct muster_err *err);
