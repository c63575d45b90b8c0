/* Prints docs/cli.md and docs/elasticdl-flags.md from the tables of commands and flags. */
#include "cli/command/commands.h"
#include "cli/command/elasticdl.h"
#include "cli/command/help.h"

enum { OPTION_BYTES = 128 };

/* Escapes each bar: it would end the cell of a table. */
static void put_cell(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '|') {
            fputc('\\', out);
        }
        fputc(*text, out);
    }
}

static void put_options(FILE *out, const struct cli_command *command)
{
    const struct cli_item *o = cli_next(command, NULL, CLI_ITEM_OPTION);
    if (o) {
        fprintf(out, "\n| option | default | |\n|---|---|---|\n");
    }
    for (; o; o = cli_next(command, o, CLI_ITEM_OPTION)) {
        char left[OPTION_BYTES];
        help_option_text(o, 0, left, sizeof left);
        fprintf(out, "| `");
        put_cell(out, left);
        fprintf(out, "` | %s | ", o->fallback ? o->fallback : "");
        put_cell(out, o->help);
        fprintf(out, " |\n");
    }
}

static void put_examples(FILE *out, const struct cli_command *command)
{
    const struct cli_item *e = cli_next(command, NULL, CLI_ITEM_EXAMPLE);
    if (!e) {
        return;
    }
    fprintf(out, "\n```sh\n");
    for (; e; e = cli_next(command, e, CLI_ITEM_EXAMPLE)) {
        fprintf(out, *e->help ? "%s   # %s\n" : "%s\n", e->name, e->help);
    }
    fprintf(out, "```\n");
}

static void put_command(FILE *out, const struct cli_command *command)
{
    fprintf(out, "\n## %s %s\n\n`%s %s%s%s`: %s.\n", cli_tool->name, command->name, cli_tool->name,
            command->name, *command->operands ? " " : "", command->operands, command->summary);
    if (*command->detail) {
        fprintf(out, "\n%s\n", command->detail);
    }
    put_options(out, command);
    put_examples(out, command);
}

static void put_refused(FILE *out)
{
    const struct elasticdl_refused *refused;
    fprintf(out, "\n## Flags that are refused\n\nTheir default is accepted: it asks for nothing."
                 "\n\n| flag | default | why |\n|---|---|---|\n");
    for (size_t i = 0; (refused = elasticdl_refused_at(i)); i++) {
        fprintf(out, "| `--%s` | %s | ", refused->name, refused->fallback);
        put_cell(out, refused->why);
        fprintf(out, " |\n");
    }
}

void help_flags(FILE *out)
{
    fprintf(out, "<!-- Made from src/cli/command/elasticdl.def: elasticdl help --markdown > "
                 "docs/elasticdl-flags.md -->\n"
                 "# The flags of elasticdl\n\n[What they become](elasticdl.md). `elasticdl COMMAND "
                 "--help` says the same in a terminal.\n");
    for (size_t i = 0; i < cli_tool->count; i++) {
        put_command(out, &cli_tool->commands[i]);
    }
    put_refused(out);
}

void help_markdown(FILE *out)
{
    fprintf(
        out,
        "<!-- Made from src/cli/command/commands.def: muster help --markdown > docs/cli.md -->\n"
        "# The command line\n\n`muster COMMAND --help` says the same in a terminal, and "
        "`man muster`.\n");
    for (size_t i = 0; i < cli_command_count; i++) {
        put_command(out, &cli_commands[i]);
    }
    fprintf(out, "\n## Environment\n\n| variable | |\n|---|---|\n");
    for (const struct help_variable *v = help_variables; v->name; v++) {
        fprintf(out, "| `%s` | %s |\n", v->name, v->meaning);
    }
    fprintf(out, "\n## Exit status\n\n| status | |\n|---|---|\n");
    for (const struct help_exit *e = help_exits; e->status; e++) {
        fprintf(out, "| %s | %s |\n", e->status, e->meaning);
    }
}
