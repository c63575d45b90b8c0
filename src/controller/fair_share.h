/* Decides whether a holder may take one more of a number of places: a holder that has many of them
 * leaves some to others.
 *
 * A holder takes places while it has less than three times as many as are free: alone, three
 * quarters of them (of three and fewer, all); a second one, three quarters of what is left, and so
 * on. No holder is asked to give one back, and none is kept free for anybody (the dynamic
 * thresholds of Choudhury and Hahne, 1998, for packet buffers).
 *
 * Layer: services; pure, for the queues of controller and kube.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

enum { FAIR_SHARE_OF_FREE = 3 };

/* held: places of the holder that asks; taken: places of all holders. */
static inline bool fair_share_may_take(size_t held, size_t taken, size_t places)
{
    assert(held <= taken);
    return taken < places && held < FAIR_SHARE_OF_FREE * (places - taken);
}

/* Returns how many places there must be so that one holder can have `wanted`. */
static inline size_t fair_share_places(size_t wanted)
{
    assert(wanted > 0);
    return ((FAIR_SHARE_OF_FREE + 1) * wanted - 1) / FAIR_SHARE_OF_FREE;
}
