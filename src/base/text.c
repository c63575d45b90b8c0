/* See text.h. */
#include "base/text.h"

#include <assert.h>
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum { NEAREST_BYTES_MAX = 128 };

size_t text_cut(const char *text, size_t max)
{
    size_t length = strnlen(text, max + 1);
    if (length <= max) {
        return length;
    }
    /* A byte 10xxxxxx continues a character. */
    length = max;
    while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80) {
        length--;
    }
    return length;
}

void text_copy(char *to, size_t room, const char *from)
{
    assert(room > 0);
    size_t length = from ? text_cut(from, room - 1) : 0;
    if (length > 0) {
        memcpy(to, from, length);
    }
    to[length] = '\0';
}

bool text_is_any_of(const char *text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(text, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

bool text_ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text);
    size_t end = strlen(ending);
    return length > end && strcmp(text + length - end, ending) == 0;
}

bool text_has_name(const char *text, const char *name)
{
    size_t length = strlen(name);
    const char *at = strstr(text, name);
    while (at && (isalnum((unsigned char)at[length]) || at[length] == '-')) {
        at = strstr(at + 1, name);
    }
    return at != NULL;
}

int text_compare_numbers(const char *a, const char *b)
{
    size_t a_length = strlen(a);
    size_t b_length = strlen(b);
    return a_length != b_length ? (a_length < b_length ? -1 : 1) : strcmp(a, b);
}

size_t text_utf8_length(const unsigned char *at, size_t left)
{
    static const struct {
        unsigned char first_min, first_max, second_min, second_max;
        size_t length;
    } forms[] = {
        {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
        {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
        {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    if (*at < 0x80) {
        return 1;
    }
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (*at < forms[i].first_min || *at > forms[i].first_max) {
            continue;
        }
        bool fits =
            left >= forms[i].length && at[1] >= forms[i].second_min && at[1] <= forms[i].second_max;
        for (size_t j = 2; fits && j < forms[i].length; j++) {
            fits = (at[j] & 0xc0) == 0x80;
        }
        return fits ? forms[i].length : 0;
    }
    return 0;
}

bool text_is_utf8(const char *text, size_t bytes)
{
    size_t length;
    for (size_t i = 0; i < bytes; i += length) {
        length = text_utf8_length((const unsigned char *)text + i, bytes - i);
        if (length == 0) {
            return false;
        }
    }
    return true;
}

/* ---- "did you mean …?" ---- */

static size_t least(size_t a, size_t b, size_t c)
{
    size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

static bool is_same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* The restricted Damerau-Levenshtein distance, computed row by row. */
size_t text_distance(const char *a, const char *b)
{
    size_t length = strlen(b);
    size_t rows[3][NEAREST_BYTES_MAX + 1]; /* of the letter before the last, the last, and this */
    if (length > NEAREST_BYTES_MAX) {
        return length + strlen(a);
    }
    for (size_t j = 0; j <= length; j++) {
        rows[0][j] = j;
    }
    size_t i = 0;
    for (; a[i]; i++) {
        const size_t *before = rows[(i + 2) % 3];
        const size_t *last = rows[i % 3];
        size_t *row = rows[(i + 1) % 3];
        row[0] = i + 1;
        for (size_t j = 0; j < length; j++) {
            row[j + 1] = least(last[j] + !is_same(a[i], b[j]), last[j + 1] + 1, row[j] + 1);
            if (i > 0 && j > 0 && is_same(a[i], b[j - 1]) && is_same(a[i - 1], b[j])) {
                row[j + 1] = least(row[j + 1], before[j - 1] + 1, row[j + 1]);
            }
        }
    }
    return rows[i % 3][length];
}

/* Returns what follows the first - or _ of the word: "workers" for "num_workers"; NULL if it is one
 * word. */
static const char *tail_of(const char *word)
{
    const char *end = strpbrk(word, "-_");
    return end && end > word ? end + 1 : NULL;
}

/* Finds --num_workers for --workers, --job_name for --name: returns the first word whose tail
 * differs from `word` by at most `distance`. */
static const char *nearest_tail(const char *word, const char *const *words, size_t count,
                                size_t distance)
{
    for (size_t i = 0; !tail_of(word) && i < count; i++) {
        const char *tail = tail_of(words[i]);
        if (tail && text_distance(word, tail) <= distance) {
            return words[i];
        }
    }
    return NULL;
}

const char *text_nearest(const char *word, const char *const *words, size_t count)
{
    const char *best = nearest_tail(word, words, count, 0);
    size_t best_distance = best ? 0 : strlen(word) / 2 + 1;
    for (size_t i = 0; i < count; i++) {
        size_t d = text_distance(word, words[i]);
        if (d < best_distance) {
            best = words[i];
            best_distance = d;
        }
    }
    return best ? best : nearest_tail(word, words, count, strlen(word) / 3);
}
