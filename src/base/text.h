/* Text in UTF-8, cut and copied without breaking a character (broken text is no JSON).
 *
 * Layer: base; pure. Thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Returns how many bytes of `text`, at most `max`, can be taken so that the last character is
 * whole. */
size_t text_cut(const char *text, size_t max);

/* Copies what fits into `room` bytes, the NUL included; NULL is "". */
void text_copy(char *to, size_t room, const char *from);

/* Whether `text` is one of the words. */
bool text_is_any_of(const char *text, const char *const *words, size_t count);

/* Whether `text` ends with `ending`, and is longer than it. */
bool text_ends_with(const char *text, const char *ending);

/* Whether the name of an object occurs in `text`, and not as the beginning of a longer name. */
bool text_has_name(const char *text, const char *name);

/* Like strcmp, for decimal numbers of any length without leading zeros; "" is less than all. */
int text_compare_numbers(const char *a, const char *b);

/* Returns the length of the UTF-8 sequence at `at`, of which `left` bytes (at least one) are
 * present, or 0 if it is invalid (RFC 3629: no surrogates, no overlong forms, nothing past
 * U+10FFFF). */
size_t text_utf8_length(const unsigned char *at, size_t left);
bool text_is_utf8(const char *text, size_t bytes);

/* Returns how many letters must be inserted, removed, replaced, or swapped with their neighbours to
 * make b of a; upper and lower case are the same. */
size_t text_distance(const char *a, const char *b);

/* Returns the word of `words` (count of them) that `word` was probably meant to be, by edit
 * distance, or NULL. */
const char *text_nearest(const char *word, const char *const *words, size_t count);
