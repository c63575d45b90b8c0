/* See age.h. The steps of age_text are apimachinery's duration.HumanDuration. */
#include "base/time/age.h"

#include "base/time/timestamp.h"

#include <stdio.h>

/* "5h12m", or "5h" when the smaller part is 0. */
static void put_two_units(char *ret, long long big, char big_unit, long long small, char small_unit)
{
    if (small) {
        snprintf(ret, AGE_BYTES, "%lld%c%lld%c", big, big_unit, small, small_unit);
    } else {
        snprintf(ret, AGE_BYTES, "%lld%c", big, big_unit);
    }
}

const char *age_text(int64_t ms, char ret[AGE_BYTES])
{
    long long s = (long long)(ms / 1000);
    long long m = s / 60;
    long long h = m / 60;
    long long d = h / 24;
    if (ms < 0) {
        snprintf(ret, AGE_BYTES, ms <= -2000 ? "<invalid>" : "0s");
    } else if (s < 120) {
        snprintf(ret, AGE_BYTES, "%llds", s);
    } else if (m < 10) {
        put_two_units(ret, m, 'm', s % 60, 's');
    } else if (h < 3) {
        snprintf(ret, AGE_BYTES, "%lldm", m);
    } else if (h < 8) {
        put_two_units(ret, h, 'h', m % 60, 'm');
    } else if (h < 48) {
        snprintf(ret, AGE_BYTES, "%lldh", h);
    } else if (d < 8) {
        put_two_units(ret, d, 'd', h % 24, 'h');
    } else if (d < 730) {
        snprintf(ret, AGE_BYTES, "%lldd", d);
    } else {
        put_two_units(ret, d / 365, 'y', d % 365, 'd');
    }
    return ret;
}

const char *age_since(const char *stamp, int64_t now_unix_ms, char ret[AGE_BYTES])
{
    int64_t then = timestamp_read(stamp);
    if (then == TIMESTAMP_NONE) {
        snprintf(ret, AGE_BYTES, "<unknown>");
        return ret;
    }
    return age_text(now_unix_ms > then ? now_unix_ms - then : 0, ret);
}

const char *age_words(int64_t ms, char ret[AGE_BYTES])
{
    long long tenths = ms < 0 ? 0 : (long long)(ms / 100);
    long long s = tenths / 10;
    if (s < 10) {
        snprintf(ret, AGE_BYTES, "%lld.%lld s", s, tenths % 10);
    } else if (s < 60) {
        snprintf(ret, AGE_BYTES, "%lld s", s);
    } else if (s < 3600) {
        snprintf(ret, AGE_BYTES, "%lld min %lld s", s / 60, s % 60);
    } else {
        snprintf(ret, AGE_BYTES, "%lld h %lld min", s / 3600, s / 60 % 60);
    }
    return ret;
}
