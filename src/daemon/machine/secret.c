/* See secret.h. */
#include "daemon/machine/secret.h"

#include "base/err.h"

#include <gnutls/gnutls.h>
#include <stdlib.h>
#include <string.h>

int secret_decode(const char *text, char **ret_bytes, size_t *ret_count, struct muster_err *err)
{
    const gnutls_datum_t encoded = {(unsigned char *)text, (unsigned)strlen(text)};
    gnutls_datum_t plain = {0};
    if (encoded.size && gnutls_base64_decode2(&encoded, &plain) < 0) {
        return muster_fail(err, MUSTER_EDATA, "not base64");
    }
    char *bytes = malloc(plain.size + 1);
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
