/* See base64.h. GnuTLS does the work; its result is copied, since it has its own allocator. */
#include "base/base64.h"

#include "base/err.h"

#include <gnutls/gnutls.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void base64_encode(const void *bytes, size_t count, struct buf *out)
{
    const gnutls_datum_t plain = {(unsigned char *)(uintptr_t)bytes, (unsigned)count};
    gnutls_datum_t encoded = {0};
    if (count == 0) {
        return;
    }
    if (count > UINT_MAX / 2 || gnutls_base64_encode2(&plain, &encoded) < 0) {
        out->failed = true;
        return;
    }
    buf_add(out, encoded.data, encoded.size);
    gnutls_free(encoded.data);
}

int base64_decode(const char *text, char **ret_bytes, size_t *ret_count, struct muster_err *err)
{
    const gnutls_datum_t encoded = {(unsigned char *)(uintptr_t)text, (unsigned)strlen(text)};
    gnutls_datum_t plain = {0};
    if (encoded.size && gnutls_base64_decode2(&encoded, &plain) < 0) {
        return muster_fail(err, MUSTER_EDATA, "not base64");
    }
    char *bytes = malloc((size_t)plain.size + 1);
    if (bytes) {
        if (plain.size) {
            memcpy(bytes, plain.data, plain.size);
        }
        bytes[plain.size] = '\0';
        *ret_bytes = bytes;
        *ret_count = plain.size;
    }
    gnutls_free(plain.data);
    return bytes ? 0 : err_no_memory(err);
}

bool base64_is(const char *text)
{
    size_t letters = 0, padding = 0;
    for (const char *at = text; *at; at++) {
        bool letter = (*at >= 'A' && *at <= 'Z') || (*at >= 'a' && *at <= 'z') ||
                      (*at >= '0' && *at <= '9') || *at == '+' || *at == '/';
        if (*at == '=') {
            padding++;
        } else if (letter && padding == 0) {
            letters++;
        } else if (*at != '\n' && *at != '\r') {
            return false;
        }
    }
    return padding <= 2 && (letters + padding) % 4 == 0;
}
