/* Parses a query from text, where no HTTP server does it. Tests and fuzzers only. */
#pragma once

#include "http/http.h"

#include <string.h>

/* Splits "a=b&c" into at most `max` pairs, in place; escapes are not decoded. */
static inline size_t query_pairs(char *text, struct http_pair *ret, size_t max)
{
    size_t count = 0;
    for (char *part = text; part && *part && count < max; count++) {
        char *next = strchr(part, '&');
        if (next) {
            *next++ = '\0';
        }
        char *value = strchr(part, '=');
        if (value) {
            *value++ = '\0';
        }
        ret[count] = (struct http_pair){part, value ? value : ""};
        part = next;
    }
    return count;
}
