/* What names, paths and quantities may look like.
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

/* "500m", "1Gi", "2e3" as a number; false when it is no quantity. */
bool job_quantity(const char *text, double *ret);
