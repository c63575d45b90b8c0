/* KEY=VALUE pairs within the value of a flag. A value may contain the separator: it ends only
 * where another KEY= follows.
 *
 * Layer: cli; pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Are these `length` bytes a key? */
typedef bool pair_is_key_fn(const char *at, size_t length);

/* How long the value at `at` is: to the next `separator` after which a KEY= follows, or to the end;
 * separators at the end are not the value's. */
size_t pair_value_length(const char *at, char separator, pair_is_key_fn *is_key);

const char *pair_skip_blanks(const char *at);

/* A copy of these bytes without blanks around them, for the caller to free; NULL without memory. */
char *pair_trimmed(const char *at, size_t length);
