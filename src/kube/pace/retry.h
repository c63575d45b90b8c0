/* Decides whether and when a request that failed is sent again.
 *
 * The rule is that of client-go: a request that the server answered with Retry-After (429, and 5xx
 * of a server that starts, stops or is overloaded) is sent again whatever its method, because the
 * server says that it has not carried it out. Without an answer a request is repeated only if that
 * does no harm: the connection was never made, or the request only reads. A write whose answer was
 * lost is reported to the caller, which finds out whether it was carried out.
 *
 * Layer: services, room kube/pace. Pure: chance comes in as a seed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
    RETRY_TRIES_MAX = 10,
    RETRY_FIRST_MS = 100,
    RETRY_MAX_MS = 10000,
    RETRY_AFTER_MAX_MS = 60000, /* used if a server asks for a longer pause */
};

/* The HTTP statuses after which a new try may succeed. */
enum { RETRY_UNAUTHORIZED = 401, RETRY_TOO_MANY = 429, RETRY_SERVER_ERROR = 500 };

/* How one try ended. */
struct retry_outcome {
    long http_status;       /* 0: there was no answer */
    int64_t retry_after_ms; /* < 0: the server named no time */
    bool connected;         /* false: no part of the request was sent */
    bool only_reads;
    int tried; /* how often it was sent, including this time */
};

/* A stream of random numbers (xorshift64*); any seed will do. */
struct retry_chance {
    uint64_t state;
};

/* Returns how many milliseconds to wait until the next try; < 0: there is no next try. */
int64_t retry_delay_ms(const struct retry_outcome *outcome, struct retry_chance *chance);

/* Returns an exponential back-off after that number of failures in a row: from half to all of
 * first_ms * 2^(failures - 1), at most max_ms. */
int64_t retry_backoff_ms(int failures, int64_t first_ms, int64_t max_ms,
                         struct retry_chance *chance);

/* Reads "120" or an HTTP date (which counts as one second); returns < 0 if it is neither. */
int64_t retry_after_ms(const char *header);
