/* Guesses what a wrong value was meant to be: "two" → 2, "1h" → 3600, "4GB" → 4G.
 *
 * Layer: pure. Each writes one hint for job/problem.h and says whether there is one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Writes a hint for text in a field that takes a whole number. `field` is the field's name: one
 * with Seconds in it takes durations. */
bool hint_integer(const char *field, const char *text, char *ret, size_t ret_bytes);

/* Writes a hint for text or a number in a field that takes true or false; `text` is as in the
 * file. */
bool hint_boolean(const char *text, char *ret, size_t ret_bytes);

bool hint_quantity(const char *text, char *ret, size_t ret_bytes);

/* Writes a hint for a command line in a field that takes a list of words. */
bool hint_words(const char *text, char *ret, size_t ret_bytes);
