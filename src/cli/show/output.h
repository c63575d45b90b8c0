/* -o: json, yaml, name, wide, jsonpath=TEMPLATE, custom-columns=HEADER:FIELD,…: as far as the verb
 * has them (the option's argument text).
 *
 * Layer: cli. Ownership: read/done; texts are borrowed from argv.
 */
#pragma once

#include "cli/command/cli.h"
#include "cli/show/custom_columns.h"
#include "cli/show/jsonpath.h"

struct output {
    const char *word;               /* the form without what follows "="; NULL: none was given */
    struct jsonpath *path;          /* of jsonpath */
    struct custom_columns *columns; /* of custom-columns */
};

/* Reads -o. MUSTER_EINVAL says what is wrong, with its position. */
int output_read(struct cli *cli, struct output *ret);
void output_done(struct output *output);

bool output_is(const struct output *output, const char *word);

/* Prints one object, or a List whose items are rows of custom-columns. Not for wide and name. */
int output_print(struct cli *cli, struct output *output, const json_t *doc);
