/* KEY=VALUE pairs within the value of a flag. A value may contain the separator: it ends only
 * where another KEY= follows.
 *
 * Layer: cli; pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Whether these `length` bytes are a key. */
typedef bool pair_is_key_fn(const char *at, size_t length);

/* The length of the value at `at`: up to the next `separator` before a KEY=, or up to the end;
 * separators at the end do not belong to the value. */
size_t pair_value_length(const char *at, char separator, pair_is_key_fn *is_key);

const char *pair_skip_blanks(const char *at);

/* A copy of these bytes without blanks around them, for the caller to free; NULL if out of memory.
 */
char *pair_trimmed(const char *at, size_t length);
