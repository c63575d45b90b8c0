/* Quantities of the Kubernetes API ("500m", "1Gi", "2e3"), in thousandths. See environment.h. */
#include "pod/environment.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* What the suffix multiplies by, as a fraction of thousandths: milli / divisor. */
static const struct suffix {
    const char *text;
    int64_t milli;
    int64_t divisor;
} suffixes[] = {
    {"", 1000, 1},           {"n", 1, 1000000},
    {"u", 1, 1000},          {"m", 1, 1},
    {"k", 1000000, 1},       {"M", 1000000000, 1},
    {"G", 1000000000000, 1}, {"T", 1000000000000000, 1},
    {"Ki", 1000LL << 10, 1}, {"Mi", 1000LL << 20, 1},
    {"Gi", 1000LL << 30, 1}, {"Ti", 1000LL << 40, 1},
    {"Pi", 1000LL << 50, 1},
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

/* "e3", "E-2" into powers of ten; false when `at` is no exponent. */
static bool read_exponent(const char *at, int *ret_power)
{
    if ((*at != 'e' && *at != 'E') || at[1] == '\0') {
        return false;
    }
    const char *digit = at + 1;
    int sign = *digit == '-' ? -1 : 1;
    digit += *digit == '-' || *digit == '+';
    int power = 0;
    if (!isdigit((unsigned char)*digit)) {
        return false;
    }
    for (; isdigit((unsigned char)*digit); digit++) {
        power = power < 100 ? power * 10 + (*digit - '0') : power;
    }
    *ret_power = sign * power;
    return *digit == '\0';
}

static bool multiply(int64_t *value, int64_t by)
{
    return !__builtin_mul_overflow(*value, by, value);
}

/* Rounded up, as the API does. */
static int64_t divide_up(int64_t value, int64_t by)
{
    return value / by + (value % by != 0);
}

/* digits / 10^decimals in thousandths, times the suffix. */
static int64_t scale(int64_t digits, int decimals, const struct suffix *suffix, int power)
{
    int64_t value = digits;
    if (!multiply(&value, suffix->milli)) {
        return -1;
    }
    for (power -= decimals; power > 0; power--) {
        if (value != 0 && !multiply(&value, 10)) {
            return -1;
        }
    }
    int64_t divisor = suffix->divisor;
    for (; power < 0; power++) {
        if (!multiply(&divisor, 10)) {
            return value != 0;
        }
    }
    return divide_up(value, divisor);
}

int64_t pod_quantity_milli(const char *text)
{
    int64_t digits = 0;
    int decimals = 0;
    bool any = false;
    bool fraction = false;
    for (text += *text == '+'; isdigit((unsigned char)*text) || (*text == '.' && !fraction);
         text++) {
        if (*text == '.') {
            fraction = true;
            continue;
        }
        any = true;
        if (!multiply(&digits, 10) || __builtin_add_overflow(digits, *text - '0', &digits)) {
            return -1;
        }
        decimals += fraction;
    }
    int power = 0;
    const struct suffix *suffix = read_exponent(text, &power) ? &suffixes[0] : find_suffix(text);
    return any && suffix ? scale(digits, decimals, suffix, power) : -1;
}
