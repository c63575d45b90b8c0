/* See token.h. */
#include "coordinator/server/token.h"

#include <string.h>

static const char blanks[] = " \t\r\n";

static int digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

int server_token_read(const char *text, uint8_t ret[WIRE_TOKEN_BYTES], struct muster_err *err)
{
    uint8_t token[WIRE_TOKEN_BYTES];
    text += strspn(text, blanks);
    for (size_t i = 0; i < WIRE_TOKEN_BYTES; i++) {
        int high = digit(text[2 * i]);
        int low = high < 0 ? -1 : digit(text[2 * i + 1]);
        if (low < 0) {
            return muster_fail(err, MUSTER_EINVAL,
                               "the token is not %d hexadecimal digits: make one with "
                               "`openssl rand -hex %d`",
                               2 * WIRE_TOKEN_BYTES, WIRE_TOKEN_BYTES);
        }
        token[i] = (uint8_t)(high << 4 | low);
    }
    const char *rest = text + 2 * WIRE_TOKEN_BYTES;
    if (rest[strspn(rest, blanks)]) {
        return muster_fail(err, MUSTER_EINVAL, "the token has more than %d hexadecimal digits",
                           2 * WIRE_TOKEN_BYTES);
    }
    memcpy(ret, token, sizeof token);
    return 0;
}

bool server_token_is(const uint8_t a[WIRE_TOKEN_BYTES], const uint8_t b[WIRE_TOKEN_BYTES])
{
    volatile uint8_t differs = 0;
    for (size_t i = 0; i < WIRE_TOKEN_BYTES; i++) {
        differs = (uint8_t)(differs | (a[i] ^ b[i]));
    }
    return differs == 0;
}
