/* Finds what editors, web pages, shells and template engines leave in a job file: curly quotes,
 * non-breaking spaces, {{ … }}, a shell's prompt, a merge conflict, a page of HTML.
 *
 * Layer: pure.
 */
#pragma once

#include "job/problem.h"

enum paste_verdict {
    PASTE_CLEAN,
    PASTE_MARKS,   /* some places are wrong, and said; the rest may be looked at */
    PASTE_FOREIGN, /* it is no YAML, and that was said */
};

/* Adds an error for each line that has such a thing, with its place and what to do. */
enum paste_verdict paste_check(const char *text, size_t bytes, struct job_problems *problems);

/* Why `text`, which is no valid value, looks as it does: a hint when it is an unfilled template or
 * a placeholder ("${NAME}", "{{ .Values.name }}", "<your-image>"), else NULL. */
const char *paste_template_hint(const char *text);
