/* See pair.h. */
#include "cli/elasticdl/pair.h"

#include <ctype.h>
#include <string.h>

const char *pair_skip_blanks(const char *at)
{
    return at + strspn(at, " \t\n");
}

static bool starts_pair(const char *at, pair_is_key_fn *is_key)
{
    at = pair_skip_blanks(at);
    size_t length = strcspn(at, "=");
    return at[length] == '=' && is_key(at, length);
}

size_t pair_value_length(const char *at, char separator, pair_is_key_fn *is_key)
{
    size_t length = 0;
    while (at[length] && !(at[length] == separator && starts_pair(at + length + 1, is_key))) {
        length++;
    }
    bool last = !at[length];
    while (last && length > 0 && strchr(", ;", at[length - 1]) && at[length - 1] == separator) {
        length--;
    }
    return length;
}

char *pair_trimmed(const char *at, size_t length)
{
    while (length > 0 && isspace((unsigned char)*at)) {
        at++;
        length--;
    }
    while (length > 0 && isspace((unsigned char)at[length - 1])) {
        length--;
    }
    return strndup(at, length);
}
