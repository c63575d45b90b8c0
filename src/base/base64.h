/* Base64 (RFC 4648), as Secrets and kubeconfigs hold bytes.
 *
 * Layer: base. Pure.
 */
#pragma once

#include "base/buf.h"

#include <muster/err.h>
#include <stdbool.h>
#include <stddef.h>

/* Appends the base64 text; check buf_failed afterwards. */
void base64_encode(const void *bytes, size_t count, struct buf *out);

/* The caller frees *ret_bytes, which has a NUL after *ret_count bytes. Returns MUSTER_EDATA if the
 * text is not base64. */
int base64_decode(const char *text, char **ret_bytes, size_t *ret_count, struct muster_err *err);

/* Whether the text is base64, as strictly as Go's decoder: padding is required; line ends are
 * skipped. */
bool base64_is(const char *text);
