/* See timestamp.h. Civil dates by H. Hinnant's algorithms (days from civil, chrono-compatible):
 * years start in March, so that the leap day is the last of its year. */
#include "base/time/timestamp.h"

#include <assert.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* 0000-01-01T00:00:00Z and 9999-12-31T23:59:59.999Z: the first and last times that can be
 * printed. */
#define FIRST_MS (-62167219200000)
#define LAST_MS 253402300799999

enum { DAYS_PER_ERA = 146097, DAYS_TO_1970 = 719468, MS_PER_DAY = 86400000 };

static int64_t days_of(int year, int month, int day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t year_of_era = y - era * 400;
    int64_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * DAYS_PER_ERA + day_of_era - DAYS_TO_1970;
}

static void civil_of(int64_t days, int *ret_year, int *ret_month, int *ret_day)
{
    int64_t z = days + DAYS_TO_1970;
    int64_t era = (z >= 0 ? z : z - DAYS_PER_ERA + 1) / DAYS_PER_ERA;
    int64_t doe = z - era * DAYS_PER_ERA;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;
    *ret_day = (int)(doy - (153 * mp + 2) / 5 + 1);
    *ret_month = (int)(mp < 10 ? mp + 3 : mp - 9);
    *ret_year = (int)(yoe + era * 400 + (*ret_month <= 2));
}

bool timestamp_fits(int64_t unix_ms)
{
    return FIRST_MS <= unix_ms && unix_ms <= LAST_MS;
}

static const char *print(int64_t unix_ms, bool fraction, char ret_text[TIMESTAMP_BYTES])
{
    assert(timestamp_fits(unix_ms));
    int64_t days = unix_ms / MS_PER_DAY - (unix_ms % MS_PER_DAY < 0);
    int rest = (int)(unix_ms - days * MS_PER_DAY);
    int year, month, day;
    civil_of(days, &year, &month, &day);
    int used = snprintf(ret_text, TIMESTAMP_BYTES, "%04d-%02d-%02dT%02d:%02d:%02d", year, month,
                        day, rest / 3600000, rest / 60000 % 60, rest / 1000 % 60);
    size_t room = (size_t)(TIMESTAMP_BYTES - used);
    if (fraction && rest % 1000) {
        snprintf(ret_text + used, room, ".%03dZ", rest % 1000);
    } else {
        snprintf(ret_text + used, room, "Z");
    }
    return ret_text;
}

const char *timestamp_text(int64_t unix_ms, char ret_text[TIMESTAMP_BYTES])
{
    return print(unix_ms, true, ret_text);
}

const char *timestamp_seconds(int64_t unix_ms, char ret_text[TIMESTAMP_BYTES])
{
    return print(unix_ms, false, ret_text);
}

/* Reads exactly `digits` digits, then the separator (any of `after`); returns -1 otherwise. */
static int number(const char **at, int digits, const char *after)
{
    int value = 0;
    for (int i = 0; i < digits; i++) {
        char c = (*at)[i];
        if (!isdigit((unsigned char)c)) {
            return -1;
        }
        value = value * 10 + (c - '0');
    }
    *at += digits;
    if (!after) {
        return value;
    }
    if (!**at || !strchr(after, **at)) {
        return -1;
    }
    (*at)++;
    return value;
}

/* Reads ".678901" as whole milliseconds. */
static int read_fraction(const char **at)
{
    if (**at != '.') {
        return 0;
    }
    int ms = 0, weight = 100;
    const char *digit = *at + 1;
    for (; isdigit((unsigned char)*digit); digit++) {
        ms += weight * (*digit - '0');
        weight /= 10;
    }
    bool any = digit > *at + 1;
    *at = digit;
    return any ? ms : -1;
}

/* Reads "Z" or "+02:00" as minutes east of UTC; returns false if it is neither. */
static bool read_offset(const char *at, int *ret_minutes)
{
    if (*at == 'Z' || *at == 'z') {
        *ret_minutes = 0;
        return at[1] == '\0';
    }
    int sign = *at == '+' ? 1 : *at == '-' ? -1 : 0;
    if (sign == 0) {
        return false;
    }
    at++;
    int hours = number(&at, 2, ":");
    int minutes = hours < 0 ? -1 : number(&at, 2, NULL);
    *ret_minutes = sign * (hours * 60 + minutes);
    return hours >= 0 && hours < 24 && minutes >= 0 && minutes < 60 && *at == '\0';
}

int64_t timestamp_read(const char *text)
{
    if (!text) {
        return TIMESTAMP_NONE;
    }
    const struct {
        int digits;
        const char *after;
        int least, most;
    } parts[] = {{4, "-", 0, 9999}, {2, "-", 1, 12}, {2, "Tt ", 1, 31},
                 {2, ":", 0, 23},   {2, ":", 0, 59}, {2, NULL, 0, 60}};
    int value[6];
    for (size_t i = 0; i < 6; i++) {
        value[i] = number(&text, parts[i].digits, parts[i].after);
        if (value[i] < parts[i].least || value[i] > parts[i].most) {
            return TIMESTAMP_NONE;
        }
    }
    int ms = read_fraction(&text);
    int east;
    if (ms < 0 || !read_offset(text, &east)) {
        return TIMESTAMP_NONE;
    }
    int64_t minutes = (int64_t)value[3] * 60 + value[4] - east;
    int64_t unix_ms = days_of(value[0], value[1], value[2]) * MS_PER_DAY + minutes * 60000 +
                      (int64_t)value[5] * 1000 + ms;
    return timestamp_fits(unix_ms) ? unix_ms : TIMESTAMP_NONE;
}
