/* A token bucket that is kept as one point in time: `credit_at` moves forward by token_ns for each
 * token taken, and is never further in the past than a whole burst. */
#include "kube/pace/budget.h"

#include <assert.h>

enum { NS_PER_S = 1000000000 };

void budget_init(struct budget *b, double qps, int burst)
{
    double token_ns = qps > 0 ? NS_PER_S / qps : 0;
    *b = (struct budget){0};
    if (token_ns > 0) {
        /* Limits the rate: less than one in a hundred years is useless. */
        b->token_ns = token_ns > 1e18 ? (int64_t)1e18 : token_ns < 1 ? 1 : (int64_t)token_ns;
        int64_t tokens = burst < 1 ? 1 : burst;
        b->burst_ns = tokens > INT64_MAX / 4 / b->token_ns ? INT64_MAX / 4 : tokens * b->token_ns;
    }
}

int64_t budget_take(struct budget *b, int64_t now_ns)
{
    assert(now_ns >= 0);
    if (b->token_ns == 0) {
        return 0;
    }
    if (!b->used || b->credit_at < now_ns - b->burst_ns) {
        b->credit_at = now_ns - b->burst_ns;
        b->used = true;
    }
    int64_t missing = b->credit_at + b->token_ns - now_ns;
    if (missing > 0) {
        return missing;
    }
    b->credit_at += b->token_ns;
    return 0;
}
