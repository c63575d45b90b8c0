/* The request budget: a token bucket.
 *
 * One budget counts every request to an API server but those of the leader's Lease, so that what an
 * operator sends in all stays below its limit (upstream's --kube-api-qps and --kube-api-burst).
 *
 * Layer: services, room kube/pace. Pure: time comes in as monotonic nanoseconds. The caller owns
 * the struct.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct budget {
    int64_t token_ns;  /* the time in which one token comes; 0: no limit */
    int64_t burst_ns;  /* how much time may be saved up */
    int64_t credit_at; /* the time at which the bucket was or will be empty */
    bool used;
};

/* qps <= 0: no limit. burst < 1 counts as 1. */
void budget_init(struct budget *b, double qps, int burst);

/* Takes a token and returns 0, or returns the nanoseconds until there is one, and takes nothing. */
int64_t budget_take(struct budget *b, int64_t now_ns);
