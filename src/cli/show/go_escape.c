/* See go_escape.h. */
#include "cli/show/go_escape.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

static void add_utf8(struct buf *out, uint32_t c)
{
    char bytes[4];
    size_t n = 0;
    if (c < 0x80) {
        bytes[n++] = (char)c;
    } else if (c < 0x800) {
        bytes[n++] = (char)(0xC0 | (c >> 6));
        bytes[n++] = (char)(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        bytes[n++] = (char)(0xE0 | (c >> 12));
        bytes[n++] = (char)(0x80 | ((c >> 6) & 0x3F));
        bytes[n++] = (char)(0x80 | (c & 0x3F));
    } else {
        bytes[n++] = (char)(0xF0 | (c >> 18));
        bytes[n++] = (char)(0x80 | ((c >> 12) & 0x3F));
        bytes[n++] = (char)(0x80 | ((c >> 6) & 0x3F));
        bytes[n++] = (char)(0x80 | (c & 0x3F));
    }
    buf_add(out, bytes, n);
}

/* Reads the code of \x41, \u00e9 or \101: `digits` of this base behind `at`; -1 if they are not
 * digits. */
static int64_t read_code(const char *at, const char *end, int digits, int base)
{
    int64_t value = 0;
    for (int i = 0; i < digits; i++) {
        char c = at + i < end ? (char)tolower((unsigned char)at[i]) : '\0';
        int digit = isdigit((unsigned char)c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
        if (digit >= base) {
            return -1;
        }
        value = value * base + digit;
    }
    return value;
}

bool go_unescape(const char **at, const char *end, char quote, struct buf *out)
{
    static const char letters[] = "abfnrtv\\";
    static const char meant[] = "\a\b\f\n\r\t\v\\";
    char c = **at;
    const char *simple = c ? strchr(letters, c) : NULL;
    if (simple || c == quote) {
        buf_add(out, simple ? &meant[simple - letters] : &c, 1);
        (*at)++;
        return true;
    }
    int digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : c >= '0' && c <= '7' ? 3 : 0;
    bool octal = digits == 3;
    const char *from = *at + !octal;
    int64_t code = digits ? read_code(from, end, digits, octal ? 8 : 16) : -1;
    bool surrogate = code >= 0xD800 && code < 0xE000;
    if (code < 0 || code > 0x10FFFF || (octal && code > 255) || surrogate) {
        return false;
    }
    if (c == 'u' || c == 'U') {
        add_utf8(out, (uint32_t)code);
    } else {
        buf_add(out, &(char){(char)code}, 1);
    }
    *at = from + digits;
    return true;
}
