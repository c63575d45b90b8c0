/* The command table as text: --help, the man page, the bash completion, docs/cli.md.
 *
 * Layer: cli; pure but for the printing.
 */
#pragma once

#include "cli/command/command.h"

#include <stdbool.h>
#include <stdio.h>

void help_all(FILE *out);
void help_command(const struct cli_command *command, FILE *out);
void help_manual(FILE *out);     /* roff: man/man1/muster.1 */
void help_completion(FILE *out); /* bash */
void help_markdown(FILE *out);   /* docs/cli.md */
void help_flags(FILE *out);      /* docs/elasticdl-flags.md, of the tool elasticdl */

/* Prints what `muster help --man`, --completion or --markdown asks for, which the build calls;
 * false for any other form. */
bool help_generate(const char *form, FILE *out);

/* Writes "-f, --filename FILE" as all of them show it (options without a letter are indented if
 * `aligned`). */
void help_option_text(const struct cli_item *option, int aligned, char *ret, size_t size);

/* Exit statuses, in the order of the page: their text, NULL at the end. */
struct help_exit {
    const char *status;
    const char *meaning;
};
extern const struct help_exit help_exits[];

/* The environment variables that muster itself reads. */
struct help_variable {
    const char *name;
    const char *meaning;
};
extern const struct help_variable help_variables[];
