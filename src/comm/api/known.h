/* The call before this one, if a quick way took it: another like it is not checked again. Layer:
 * comm; see known.c. */
#pragma once

#include "comm/algorithm/way.h"

/* A call that way_known() describes, and may be run at once by its run. */
static inline bool known_fits(struct muster_comm *comm, const void *in, const void *out,
                              size_t count, enum muster_type type, enum muster_op op)
{
    const struct known_call *known = way_known(comm);
    return known->run && count == known->count && type == known->type && op == known->op && in &&
           out;
}

/* 1: checked, and way_known() describes it; 0: no quick way takes it; negative: an error. */
int known_learn(struct muster_comm *comm, const struct muster_call *call, struct muster_err *err);
