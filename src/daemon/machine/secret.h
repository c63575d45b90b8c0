/* The bytes behind base64 text, as Secrets and binaryData hold them.
 *
 * Layer: program (daemon).
 */
#pragma once

#include <muster/err.h>
#include <stddef.h>

/* The caller frees *ret_bytes, which is NUL-terminated beyond *ret_count. MUSTER_EDATA: it is not
 * base64. */
int secret_decode(const char *text, char **ret_bytes, size_t *ret_count, struct muster_err *err);
