/* What ElasticDL's flags have that muster's own options have not: booleans whose value may be left
 * out, and flags of strategies that muster does not do.
 *
 * Layer: cli; pure. Static texts.
 */
#pragma once

#include "cli/command/command.h"

#include <stdbool.h>

struct elasticdl_refused {
    const char *name;
    const char *fallback; /* its default, which may be given */
    const char *why;
};

/* The flag of that name (without "--", in either spelling) that `command` knows and refuses; NULL
 * if there is none. */
const struct elasticdl_refused *elasticdl_refused_find(const struct cli_command *command,
                                                       const char *name);

/* The refused flags in their order; NULL at the end. */
const struct elasticdl_refused *elasticdl_refused_at(size_t index);

/* Whether the word after the flag is its value. */
bool elasticdl_takes(const struct elasticdl_refused *flag, const char *next);
bool elasticdl_is_fallback(const struct elasticdl_refused *flag, const char *value);

/* 1 for true, yes, t, y, 1 and 0 for false, no, f, n, 0, in any case; -1 for any other word. */
int elasticdl_boolean(const char *word);

/* Whether the value of the option may be left out; it is then the opposite of the default. */
bool elasticdl_is_optional(const struct cli_item *option);
