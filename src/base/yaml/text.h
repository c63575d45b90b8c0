/* Text that no YAML parser should see, and what a syntax error means in the words of the file.
 *
 * Layer: base; pure. Used by load.c only.
 */
#pragma once

#include "base/yaml/yaml.h"

/* What is wrong with the bytes themselves; NULL when nothing is. Static text. */
const char *yaml_text_fault(const char *text, size_t bytes, struct yaml_place *ret_place,
                            const char **ret_hint);

/* The most brackets and braces that are open at once, wherever they stand: in text, too. */
size_t yaml_text_open_max(const char *text, size_t bytes);

/* A sentence for an error that libfyaml reports at `place`, and what helps (NULL: nothing known).
 * The place becomes that of the mistake: of the bracket that was left open, of the tab. */
const char *yaml_syntax_sentence(const char *text, size_t bytes, struct yaml_place *place,
                                 const char *library_says, const char **ret_hint);
