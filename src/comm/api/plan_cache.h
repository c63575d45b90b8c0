/* Remembers the last call, if a fast path took it: another call like it is not checked again.
 * Layer: comm; see plan_cache.c. */
#pragma once

#include "comm/algorithm/way.h"

/* Whether way_plan() describes this call and has a function that can run it at once. */
static inline bool plan_fits(struct muster_comm *comm, const void *in, const void *out,
                             size_t count, enum muster_type type, enum muster_op op)
{
    const struct plan *plan = way_plan(comm);
    return plan->run && count == plan->call.count && type == plan->call.type &&
           op == plan->call.op && in && out;
}

/* Looks for a fast path for an all-reduce. True: way_plan() describes this call; false: no fast
 * path takes it. */
bool plan_learn(struct muster_comm *comm, const struct prepared *call);
