/* Finds text that no YAML parser should get, and explains syntax errors in terms of the file.
 *
 * Layer: base; pure. Used by load.c only.
 */
#pragma once

#include "base/yaml/yaml.h"

/* Returns what is wrong with the bytes themselves, as static text, or NULL if nothing is. */
const char *yaml_text_fault(const char *text, size_t bytes, struct yaml_place *ret_place,
                            const char **ret_hint);

/* Returns the largest number of brackets and braces that are open at once; those inside text count,
 * too. */
size_t yaml_text_open_max(const char *text, size_t bytes);

/* Returns a sentence for an error that libfyaml reports at `place`, and a hint (NULL if there is
 * none). The place is changed to that of the mistake: to the bracket that was left open, or to the
 * tab. */
const char *yaml_syntax_sentence(const char *text, size_t bytes, struct yaml_place *place,
                                 const char *library_says, const char **ret_hint);
