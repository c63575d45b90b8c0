/* See hint.h. */
#include "job/check/hint.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/quantity.h"
#include "base/shell_words.h"
#include "job/text.h"

#include <ctype.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_BYTES_MAX = 32, DIGITS_MAX = 9, SECONDS_MAX = INT32_MAX };

static bool only_digits(const char *text)
{
    return *text && text[strspn(text, "0123456789")] == '\0';
}

/* --- whole numbers --- */

static int number_word(const char *text)
{
    static const char *const words[] = {"zero",  "one",   "two",  "three", "four",   "five",  "six",
                                        "seven", "eight", "nine", "ten",   "eleven", "twelve"};
    for (int i = 0; i < (int)(sizeof words / sizeof words[0]); i++) {
        if (strcasecmp(text, words[i]) == 0) {
            return i;
        }
    }
    return -1;
}

/* Returns the number of seconds in one unit, or 0 if it is not a unit. */
static int64_t unit_seconds(const char *unit, size_t length)
{
    static const struct {
        const char *names;
        int64_t seconds;
    } units[] = {
        {"s sec secs second seconds", 1},     {"m min mins minute minutes", 60},
        {"h hr hrs hour hours", 3600},        {"d day days", 86400},
        {"w week weeks", (int64_t)7 * 86400},
    };
    for (size_t i = 0; length > 0 && i < sizeof units / sizeof units[0]; i++) {
        for (const char *at = units[i].names; *at;) {
            size_t step = strcspn(at, " ");
            if (step == length && strncasecmp(at, unit, step) == 0) {
                return units[i].seconds;
            }
            at += step + (at[step] == ' ');
        }
    }
    return 0;
}

/* Reads "1h30m" or "10 minutes": the sum of numbers with units; returns -1 if the text is not a
 * duration. */
static int64_t duration_seconds(const char *text)
{
    int64_t sum = 0;
    while (*text) {
        size_t digits = strspn(text, "0123456789");
        if (digits == 0 || digits > DIGITS_MAX) {
            return -1;
        }
        int64_t count = strtol(text, NULL, 10);
        text += digits;
        text += strspn(text, " ");
        size_t letters = 0;
        while (isalpha((unsigned char)text[letters])) {
            letters++;
        }
        int64_t unit = unit_seconds(text, letters);
        sum += count * unit;
        text += letters;
        text += strspn(text, " ");
        if (unit == 0 || sum > SECONDS_MAX) {
            return -1;
        }
    }
    return sum > 0 ? sum : -1;
}

bool hint_integer(const char *field, const char *text, char *ret, size_t ret_bytes)
{
    const char *digits = text + (*text == '-');
    int64_t seconds = strstr(field, "Seconds") ? duration_seconds(text) : -1;
    int number = number_word(text);
    if (only_digits(digits) && strlen(digits) <= DIGITS_MAX) {
        snprintf(ret, ret_bytes, "remove the quotes");
    } else if (number >= 0) {
        snprintf(ret, ret_bytes, "write %d", number);
    } else if (seconds >= 0) {
        snprintf(ret, ret_bytes, "write %lld, in seconds", (long long)seconds);
    } else {
        snprintf(ret, ret_bytes, "write digits only, such as 2");
    }
    return true;
}

/* --- true and false --- */

bool hint_boolean(const char *text, char *ret, size_t ret_bytes)
{
    static const char yes[] = "true yes on y 1 enabled", no[] = "false no off n 0 disabled";
    char word[WORD_BYTES_MAX];
    snprintf(word, sizeof word, " %.20s ", text);
    for (char *at = word; *at; at++) {
        *at = (char)tolower((unsigned char)*at);
    }
    char all[2 * sizeof yes];
    snprintf(all, sizeof all, " %s ", yes);
    bool is_yes = strstr(all, word) != NULL;
    snprintf(all, sizeof all, " %s ", no);
    bool is_no = strstr(all, word) != NULL;
    snprintf(ret, ret_bytes, "write %s", is_yes ? "true" : is_no ? "false" : "true or false");
    return true;
}

/* --- quantities --- */

/* Returns the suffix that Kubernetes knows, for the word in "4GB", "4 gb" or "4 GiB"; "" for any
 * other word. */
static const char *known_suffix(const char *word)
{
    static const char *const suffixes[][2] = {
        {"b", ""},     {"byte", ""}, {"bytes", ""}, {"core", ""},    {"cores", ""},
        {"cpu", ""},   {"cpus", ""}, {"k", "k"},    {"kb", "k"},     {"ki", "Ki"},
        {"kib", "Ki"}, {"mb", "M"},  {"meg", "M"},  {"mi", "Mi"},    {"mib", "Mi"},
        {"g", "G"},    {"gb", "G"},  {"gig", "G"},  {"gi", "Gi"},    {"gib", "Gi"},
        {"t", "T"},    {"tb", "T"},  {"ti", "Ti"},  {"tib", "Ti"},   {"p", "P"},
        {"pb", "P"},   {"pi", "Pi"}, {"pib", "Pi"}, {"millis", "m"}, {"millicores", "m"},
    };
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        if (strcasecmp(word, suffixes[i][0]) == 0) {
            return suffixes[i][1];
        }
    }
    return NULL;
}

bool hint_quantity(const char *text, char *ret, size_t ret_bytes)
{
    size_t digits = strspn(text, "0123456789.");
    const char *word = text + digits + strspn(text + digits, " ");
    const char *suffix = *word ? known_suffix(word) : "";
    char better[2 * WORD_BYTES_MAX];
    double number;
    if (!suffix || digits == 0 || digits > WORD_BYTES_MAX) {
        return false;
    }
    snprintf(better, sizeof better, "%.*s%s", (int)digits, text, suffix);
    if (!quantity_read(better, &number)) {
        return false;
    }
    snprintf(ret, ret_bytes, "did you mean %s?", better);
    return true;
}

/* --- lists of words --- */

bool hint_words(const char *text, char *ret, size_t ret_bytes)
{
    char **words = NULL;
    if (shell_split(text, &words, NULL) != 0) {
        return false;
    }
    struct buf list;
    buf_init(&list, ret_bytes - sizeof "write []");
    for (char **word = words; *word; word++) {
        json_t *value = json_string(*word);
        muster_auto(free) char *quoted = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
        json_decref(value);
        buf_format(&list, "%s%s", word > words ? ", " : "", quoted ? quoted : "");
    }
    bool good = !buf_failed(&list) && words[0];
    snprintf(ret, ret_bytes, "write [%s]", buf_str(&list));
    buf_done(&list);
    shell_free(words);
    return good;
}
