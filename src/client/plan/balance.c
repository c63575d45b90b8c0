/* See balance.h. */
#include "client/plan/balance.h"

#include <muster/comm.h>

#include <string.h>

enum { GAIN_NS = 2000000 };

/* Limits the time of a pass to some minutes, also against hostile values, so that sums do not
 * overflow. */
static uint64_t bounded(uint64_t pass_ns)
{
    const uint64_t most = UINT64_C(1) << 40;
    return pass_ns < most ? pass_ns : most;
}

static uint64_t step_ns(const uint64_t *pass_ns, int size, const uint32_t *counts)
{
    uint64_t longest = 0;
    for (int r = 0; r < size; r++) {
        uint64_t each = counts[r] * bounded(pass_ns[r]);
        longest = each > longest ? each : longest;
    }
    return longest;
}

/* Gives each micro-batch to the rank that finishes first with it; among equals, to the first
 * rank. */
static void divide(const uint64_t *pass_ns, int size, uint32_t micro_batches, uint32_t *ret)
{
    for (int r = 0; r < size; r++) {
        ret[r] = 1;
    }
    for (uint32_t left = micro_batches - (uint32_t)size; left > 0; left--) {
        int to = 0;
        for (int r = 1; r < size; r++) {
            uint64_t here = (ret[r] + 1) * bounded(pass_ns[r]);
            to = here < (ret[to] + 1) * bounded(pass_ns[to]) ? r : to;
        }
        ret[to]++;
    }
}

bool balance_move(const uint64_t *pass_ns, int size, uint32_t micro_batches, uint32_t *counts)
{
    uint32_t better[MUSTER_MAX_RANKS];
    if (size < 2 || micro_batches <= (uint32_t)size) {
        return false;
    }
    for (int r = 0; r < size; r++) {
        if (pass_ns[r] == 0) {
            return false;
        }
    }
    divide(pass_ns, size, micro_batches, better);
    uint64_t now = step_ns(pass_ns, size, counts), then = step_ns(pass_ns, size, better);
    bool gains = now >= then + GAIN_NS && 4 * now >= 5 * then;
    if (gains) {
        memcpy(counts, better, (size_t)size * sizeof *counts);
    }
    return gains;
}
