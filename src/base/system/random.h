/* Random numbers from the kernel, fit for tokens and names.
 *
 * Layer: base (not for pure code). Thread: any.
 */
#pragma once

#include <muster/err.h>

#include <stddef.h>

/* Fills `count` bytes, at most 256. MUSTER_EOS: the system gives none. */
int random_bytes(void *ret, size_t count, struct muster_err *err);

/* Writes 2 * count lowercase hexadecimal digits and a NUL; count is at most RANDOM_HEX_MAX. */
enum { RANDOM_HEX_MAX = 64 };
int random_hex(char *ret, size_t count, struct muster_err *err);
