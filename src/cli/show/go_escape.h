/* Escapes of Go's quoted text, as strconv.Unquote reads them.
 *
 * Layer: cli. Pure.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>

/* Appends what the escape at *at, behind the backslash, means, and moves *at behind the escape.
 * Returns false, and leaves *at, if there is no such escape before `end`. */
bool go_unescape(const char **at, const char *end, char quote, struct buf *out);
