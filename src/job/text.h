/* Rules for names and paths.
 *
 * Layer: pure. Static texts only.
 */
#pragma once

#include "job/schema.h"

/* What is wrong with `text`, as "must …"; NULL when it has the form. SCHEMA_WORDS is not one of
 * these. */
const char *job_text_fault(enum schema_form form, const char *text);

/* The nearest name of that form with `max` characters at most ("my_job" → "my-job"), or "" when
 * there is none. */
void job_text_mend(enum schema_form form, const char *text, size_t max, char *ret,
                   size_t ret_bytes);
