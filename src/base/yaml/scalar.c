/* See scalar.h. The rules are those of the Go package that kubectl reads YAML with
 * (gopkg.in/yaml.v2, resolve.go): underscores in numbers, 012 octal, no sexagesimals, dates stay
 * text. */
#include "base/yaml/scalar.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_BYTES_MAX = 128 };

enum meaning { MEANS_NULL, MEANS_TRUE, MEANS_FALSE };

static const struct word {
    const char *text;
    enum meaning meaning;
} words[] = {
    {"", MEANS_NULL},       {"~", MEANS_NULL},      {"null", MEANS_NULL},   {"Null", MEANS_NULL},
    {"NULL", MEANS_NULL},   {"true", MEANS_TRUE},   {"True", MEANS_TRUE},   {"TRUE", MEANS_TRUE},
    {"yes", MEANS_TRUE},    {"Yes", MEANS_TRUE},    {"YES", MEANS_TRUE},    {"on", MEANS_TRUE},
    {"On", MEANS_TRUE},     {"ON", MEANS_TRUE},     {"y", MEANS_TRUE},      {"Y", MEANS_TRUE},
    {"false", MEANS_FALSE}, {"False", MEANS_FALSE}, {"FALSE", MEANS_FALSE}, {"no", MEANS_FALSE},
    {"No", MEANS_FALSE},    {"NO", MEANS_FALSE},    {"off", MEANS_FALSE},   {"Off", MEANS_FALSE},
    {"OFF", MEANS_FALSE},   {"n", MEANS_FALSE},     {"N", MEANS_FALSE},
};

static json_t *word_value(const char *text, size_t length)
{
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strlen(words[i].text) == length && memcmp(words[i].text, text, length) == 0) {
            switch (words[i].meaning) {
            case MEANS_NULL: return json_null();
            case MEANS_TRUE: return json_true();
            case MEANS_FALSE: return json_false();
            }
        }
    }
    return NULL;
}

/* Copies the text without its underscores; returns false if it cannot be a number. */
static bool number_text(const char *text, size_t length, char ret[NUMBER_BYTES_MAX])
{
    if (length >= NUMBER_BYTES_MAX || !memchr("+-.0123456789", text[0], 13)) {
        return false;
    }
    size_t used = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\0') {
            return false;
        }
        if (text[i] != '_') {
            ret[used++] = text[i];
        }
    }
    ret[used] = '\0';
    return used > 0;
}

/* Returns the base that the prefix of `digits` means, and moves *digits past the prefix. */
static int take_base(const char **digits)
{
    static const struct {
        const char *prefix;
        int base;
    } prefixes[] = {{"0x", 16}, {"0X", 16}, {"0o", 8}, {"0O", 8}, {"0b", 2}, {"0B", 2}};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        if (strncmp(*digits, prefixes[i].prefix, 2) == 0) {
            *digits += 2;
            return prefixes[i].base;
        }
    }
    return (*digits)[0] == '0' && (*digits)[1] ? 8 : 10;
}

static json_t *integer_value(const char *text)
{
    bool negative = *text == '-';
    const char *digits = text + (*text == '-' || *text == '+');
    int base = take_base(&digits);
    if (!*digits || digits[strspn(digits, "0123456789abcdefABCDEF")]) {
        return NULL; /* strtoull would accept white space, signs and a second prefix */
    }
    char *end;
    errno = 0;
    uint64_t value = strtoull(digits, &end, base);
    if (*end || errno == ERANGE) {
        return NULL;
    }
    if (value > (uint64_t)INT64_MAX) {
        return json_real(negative ? -(double)value : (double)value);
    }
    return json_integer(negative ? -(json_int_t)value : (json_int_t)value);
}

static size_t count_digits(const char *text)
{
    return strspn(text, "0123456789");
}

/* Whether the text is [-+]? (.digits | digits[.digits]) [(e|E) [-+]? digits]. */
static bool looks_like_float(const char *text)
{
    text += *text == '-' || *text == '+';
    size_t whole = count_digits(text);
    text += whole;
    if (*text == '.') {
        size_t fraction = count_digits(++text);
        if (whole + fraction == 0) {
            return false;
        }
        text += fraction;
    } else if (whole == 0) {
        return false;
    }
    if (*text == 'e' || *text == 'E') {
        text++;
        text += *text == '-' || *text == '+';
        size_t exponent = count_digits(text);
        if (exponent == 0) {
            return false;
        }
        text += exponent;
    }
    return *text == '\0';
}

/* Returns a float. The API's JSON prints a float without a fraction as an integer: 1.0 is 1, 08 is
 * 8. */
static json_t *float_value(const char *text)
{
    if (!looks_like_float(text)) {
        return NULL;
    }
    double value = strtod(text, NULL);
    if (!isfinite(value)) {
        return NULL;
    }
    bool whole = fabs(value) < 1e15 && nearbyint(value) == value;
    return whole ? json_integer((json_int_t)value) : json_real(value);
}

json_t *yaml_resolve(const char *text, size_t length)
{
    json_t *value = word_value(text, length);
    char number[NUMBER_BYTES_MAX];
    if (!value && number_text(text, length, number)) {
        value = integer_value(number);
        if (!value) {
            value = float_value(number);
        }
    }
    return value ? value : json_stringn(text, length);
}
