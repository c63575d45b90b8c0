/* See text.h. */
#include "base/text.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

size_t text_cut(const char *text, size_t max)
{
    size_t length = strnlen(text, max + 1);
    if (length <= max) {
        return length;
    }
    /* 10xxxxxx continues a character. */
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
