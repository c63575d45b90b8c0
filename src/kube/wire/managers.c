/* See wire/managers.h. */
#include "kube/wire/managers.h"

#include <string.h>

/* In a string, a quote has a backslash before it, so these bytes are always a member's name. */
static const char key[] = "\"managedFields\":[";

/* Returns the end of the string that begins at `at`; NULL: it does not end. */
static const char *end_of_string(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++) {
        at += *at == '\\';
    }
    return at < end ? at + 1 : NULL;
}

/* Returns the bracket that closes the array whose first byte is at `at`; NULL: there is none. */
static const char *end_of_array(const char *at, const char *end)
{
    size_t depth = 1;
    while (at && at < end) {
        if (*at == '"') {
            at = end_of_string(at, end);
            continue;
        }
        depth += *at == '[';
        depth -= *at == ']';
        if (depth == 0) {
            return at;
        }
        at++;
    }
    return NULL;
}

size_t wire_drop_managers(char *json, size_t bytes)
{
    const char *from = json, *end = json + bytes;
    char *to = json;
    while (from < end) {
        const char *found = memmem(from, (size_t)(end - from), key, sizeof key - 1);
        const char *after = found ? found + sizeof key - 1 : NULL;
        const char *close = after ? end_of_array(after, end) : NULL;
        size_t kept = (size_t)((close ? after : end) - from);
        memmove(to, from, kept);
        to += kept;
        if (!close) {
            break;
        }
        from = close;
    }
    return (size_t)(to - json);
}
