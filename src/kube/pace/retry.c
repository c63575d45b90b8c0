/* See pace/retry.h. */
#include "kube/pace/retry.h"

#include <ctype.h>
#include <stddef.h>

enum { MS_PER_S = 1000 };

static uint64_t draw(struct retry_chance *chance)
{
    uint64_t x = chance->state ? chance->state : 0x9e3779b97f4a7c15U;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    chance->state = x;
    return x * 0x2545f4914f6cdd1dU;
}

int64_t retry_backoff_ms(int failures, int64_t first_ms, int64_t max_ms,
                         struct retry_chance *chance)
{
    int64_t limit = first_ms > 0 ? first_ms : 1;
    for (int i = 1; i < failures && limit < max_ms; i++) {
        limit *= 2;
    }
    limit = limit < max_ms ? limit : max_ms;
    int64_t half = limit / 2;
    return half + (int64_t)(draw(chance) % (uint64_t)(limit - half + 1));
}

/* Whether the server has said, or it is obvious, that nothing was done. */
static bool may_repeat(const struct retry_outcome *o)
{
    if (o->http_status == 0) {
        return !o->connected || o->only_reads;
    }
    if (o->http_status == RETRY_TOO_MANY) {
        return true;
    }
    return o->http_status >= RETRY_SERVER_ERROR && (o->only_reads || o->retry_after_ms >= 0);
}

int64_t retry_delay_ms(const struct retry_outcome *outcome, struct retry_chance *chance)
{
    if (outcome->tried >= RETRY_TRIES_MAX || !may_repeat(outcome)) {
        return -1;
    }
    int64_t backoff = retry_backoff_ms(outcome->tried, RETRY_FIRST_MS, RETRY_MAX_MS, chance);
    int64_t asked = outcome->retry_after_ms;
    asked = asked < RETRY_AFTER_MAX_MS ? asked : RETRY_AFTER_MAX_MS;
    /* Jitter is added: clients that were refused together must not return together. */
    return asked > 0 ? asked + backoff / 4 : backoff;
}

int64_t retry_after_ms(const char *header)
{
    int64_t seconds = 0;
    if (!header || !*header) {
        return -1;
    }
    for (const char *at = header; *at; at++) {
        if (!isdigit((unsigned char)*at)) {
            return isalpha((unsigned char)*header) ? MS_PER_S : -1;
        }
        seconds = seconds < RETRY_AFTER_MAX_MS ? seconds * 10 + (*at - '0') : seconds;
    }
    return seconds * MS_PER_S;
}
