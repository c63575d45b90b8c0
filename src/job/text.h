/* Rules for names and paths.
 *
 * Layer: pure. Static texts only.
 */
#pragma once

#include "job/schema.h"

/* Returns what is wrong with `text`, as "must …", or NULL if it has the form. SCHEMA_WORDS is not
 * one of these forms. */
const char *job_text_fault(enum schema_form form, const char *text);

/* Writes the nearest name of that form with at most `max` characters ("my_job" → "my-job"), or ""
 * if there is none. */
void job_text_mend(enum schema_form form, const char *text, size_t max, char *ret,
                   size_t ret_bytes);
