/* Base64 (RFC 4648), as Secrets and kubeconfigs hold bytes.
 *
 * Layer: services, pure.
 */
#pragma once

#include "base/buf.h"

/* Appends; look at buf_failed. */
void base64_encode(const void *bytes, size_t count, struct buf *out);
