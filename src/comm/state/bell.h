/* Doorbells, by which ranks of a host wake each other. Layer: comm; see wait.c, which sleeps on
 * them. */
#pragma once

#include "comm/state/state.h"

void bell_ring(struct control *control);

static inline void bell_wake(struct control *control)
{
    if (atomic_load_explicit(&control->sleepers, memory_order_relaxed) > 0) {
        bell_ring(control);
    }
}

static inline void bell_wake_locals(struct muster_comm *comm)
{
    for (int l = 0; l < comm->local_size; l++) {
        if (l != comm->local_rank) {
            bell_wake(segment_control(&comm->segment, l));
        }
    }
}
