/* See text.h. */
#include "base/text.h"

#include <assert.h>
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
