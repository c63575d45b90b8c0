/* Escapes of Go's quoted text, as strconv.Unquote reads them.
 *
 * Layer: cli. Pure.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>

/* Appends what the escape means that begins at *at, behind the backslash, and moves *at behind it.
 * False when there is no such escape before `end`; *at stays. */
bool go_unescape(const char **at, const char *end, char quote, struct buf *out);
