/* See rotation.h. */
#include "operator/webhook/rotation.h"

enum {
    AUTHORITY_LIVES = 4,
    MARGINS = 12,
    MARGIN_MS_MAX = 3600 * 1000,
    RENEWED_IN_LAST = 3,
    ROUNDING_MS = 1000 /* times in a certificate have whole seconds */
};

struct rotation_lives rotation_lives_of(int64_t serving_ms)
{
    int64_t margin_ms = serving_ms / MARGINS;
    return (struct rotation_lives){
        .authority_ms = AUTHORITY_LIVES * serving_ms,
        .serving_ms = serving_ms,
        .margin_ms = margin_ms < MARGIN_MS_MAX ? margin_ms : MARGIN_MS_MAX,
    };
}

static bool is_valid(const struct certificate_span *span, int64_t now_ms)
{
    return span->from_unix_ms <= now_ms && now_ms < span->until_unix_ms;
}

/* Whether the certificate has spread: its time begins one margin before it was made, and it needs
 * about one more margin. */
static bool has_got_about(const struct certificate_span *span, const struct rotation_lives *lives,
                          int64_t now_ms)
{
    return now_ms >= span->from_unix_ms + ROUNDING_MS + 2 * lives->margin_ms;
}

static bool is_due(const struct certificate_span *span, int64_t now_ms)
{
    return now_ms >=
           span->until_unix_ms - (span->until_unix_ms - span->from_unix_ms) / RENEWED_IN_LAST;
}

enum rotation_do rotation_step(const struct rotation_facts *facts,
                               const struct rotation_lives *lives, int64_t now_unix_ms)
{
    const struct certificate_span *newest = &facts->newest;
    const struct certificate_span *serving = &facts->serving;
    if (!facts->usable || !is_valid(newest, now_unix_ms) || !is_valid(serving, now_unix_ms)) {
        return ROTATION_ANEW;
    }
    if (!facts->serving_is_of_newest) {
        return facts->published && has_got_about(newest, lives, now_unix_ms) ? ROTATION_SERVING
                                                                             : ROTATION_NOTHING;
    }
    if (facts->has_older) {
        return has_got_about(serving, lives, now_unix_ms) ? ROTATION_FORGET : ROTATION_NOTHING;
    }
    if (is_due(newest, now_unix_ms)) {
        return ROTATION_AUTHORITY;
    }
    return is_due(serving, now_unix_ms) ? ROTATION_SERVING : ROTATION_NOTHING;
}
