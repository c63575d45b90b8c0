/* Finds what editors, web pages, shells and template engines leave in a job file: curly quotes,
 * non-breaking spaces, {{ … }}, a shell's prompt, a merge conflict, a page of HTML.
 *
 * Layer: pure.
 */
#pragma once

#include "job/problem.h"

enum paste_verdict {
    PASTE_CLEAN,
    PASTE_MARKS,   /* some places are wrong, and were reported; the rest can be checked */
    PASTE_FOREIGN, /* it is not YAML, and this was reported */
};

/* Adds an error for each line with such text, with its place and what to do. */
enum paste_verdict paste_check(const char *text, size_t bytes, struct job_problems *problems);

/* Returns a hint if `text`, which is not a valid value, is an unfilled template or a placeholder
 * ("${NAME}", "{{ .Values.name }}", "<your-image>"), otherwise NULL. */
const char *paste_template_hint(const char *text);
