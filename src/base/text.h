/* Text in UTF-8, cut and copied without breaking a character (broken text is no JSON).
 *
 * Layer: base; pure. Thread-safe.
 */
#pragma once

#include <stddef.h>

/* How many bytes of `text`, at most `max`, can be taken so that the last character is whole. */
size_t text_cut(const char *text, size_t max);

/* Copies what fits into `room` bytes, the NUL included; NULL is "". */
void text_copy(char *to, size_t room, const char *from);
