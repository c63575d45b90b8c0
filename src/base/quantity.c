/* See quantity.h. A quantity is a sign, digits with a point, and an exponent or a suffix. */
#include "base/quantity.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    DIGITS_MAX = 40,
    POWER_MAX = 100000, /* a larger exponent counts as this one: no number has such an exponent */
};

/* The factor that a suffix stands for. */
static const struct suffix {
    const char *text;
    int64_t factor, divisor;
} suffixes[] = {
    {"", 1, 1},
    {"n", 1, 1000000000},
    {"u", 1, 1000000},
    {"m", 1, 1000},
    {"k", 1000, 1},
    {"M", 1000000, 1},
    {"G", 1000000000, 1},
    {"T", 1000000000000, 1},
    {"P", 1000000000000000, 1},
    {"E", 1000000000000000000, 1},
    {"Ki", 1LL << 10, 1},
    {"Mi", 1LL << 20, 1},
    {"Gi", 1LL << 30, 1},
    {"Ti", 1LL << 40, 1},
    {"Pi", 1LL << 50, 1},
    {"Ei", 1LL << 60, 1},
};

struct quantity {
    bool negative;
    const char *digits; /* with the decimal point */
    size_t length;
    int decimals; /* digits after the point */
    int power;    /* power of ten of the exponent */
    const struct suffix *suffix;
};

static const struct suffix *find_suffix(const char *text)
{
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        if (strcmp(text, suffixes[i].text) == 0) {
            return &suffixes[i];
        }
    }
    return NULL;
}

static const char *skip_digits(const char *at)
{
    while (isdigit((unsigned char)*at)) {
        at++;
    }
    return at;
}

/* Reads "e3", "E-2" as a power of ten; returns false if `at` is not an exponent. */
static bool scan_exponent(const char *at, int *ret_power)
{
    if (*at != 'e' && *at != 'E') {
        return false;
    }
    bool negative = at[1] == '-';
    const char *digit = at + 1 + (negative || at[1] == '+');
    int power = 0;
    if (!isdigit((unsigned char)*digit)) {
        return false;
    }
    for (; isdigit((unsigned char)*digit); digit++) {
        power = power < POWER_MAX ? power * 10 + (*digit - '0') : power;
    }
    *ret_power = negative ? -power : power;
    return *digit == '\0';
}

static bool scan(const char *text, struct quantity *ret)
{
    const char *digits = text + (*text == '+' || *text == '-');
    const char *point = skip_digits(digits);
    const char *end = *point == '.' ? skip_digits(point + 1) : point;
    *ret = (struct quantity){.negative = *text == '-',
                             .digits = digits,
                             .length = (size_t)(end - digits),
                             .decimals = *point == '.' ? (int)(end - point - 1) : 0};
    size_t count = ret->length - (*point == '.');
    ret->suffix = scan_exponent(end, &ret->power) ? &suffixes[0] : find_suffix(end);
    return count > 0 && count <= DIGITS_MAX && ret->suffix;
}

bool quantity_read(const char *text, double *ret)
{
    struct quantity q;
    if (!scan(text, &q)) {
        return false;
    }
    double value = strtod(text, NULL); /* includes the exponent */
    *ret = value * ((double)q.suffix->factor / (double)q.suffix->divisor);
    return isfinite(value);
}

static bool multiply(int64_t *value, int64_t by)
{
    return !__builtin_mul_overflow(*value, by, value);
}

/* Reads the digits without the decimal point; `decimals` has its position. */
static bool read_digits(const struct quantity *q, int64_t *ret)
{
    *ret = 0;
    for (const char *at = q->digits; at < q->digits + q->length; at++) {
        if (*at != '.' && (!multiply(ret, 10) || __builtin_add_overflow(*ret, *at - '0', ret))) {
            return false;
        }
    }
    return true;
}

int64_t quantity_milli(const char *text)
{
    struct quantity q;
    int64_t value;
    if (!scan(text, &q) || q.negative || !read_digits(&q, &value)) {
        return -1;
    }
    int64_t divisor = q.suffix->divisor;
    int64_t factor = 1000 * (divisor == 1);
    if (divisor > 1) { /* the result is in thousandths */
        assert(divisor % 1000 == 0);
        divisor /= 1000;
        factor = 1;
    }
    if (value == 0) {
        return 0;
    }
    if (!multiply(&value, factor) || !multiply(&value, q.suffix->factor)) {
        return -1;
    }
    int power = q.power - q.decimals;
    for (; power > 0; power--) {
        if (!multiply(&value, 10)) {
            return -1;
        }
    }
    for (; power < 0; power++) {
        if (!multiply(&divisor, 10)) {
            return 1; /* less than a thousandth */
        }
    }
    return value / divisor + (value % divisor != 0);
}
