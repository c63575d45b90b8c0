/* Prints the man page, in roff with the man(7) macros. */
#include "cli/command/commands.h"
#include "cli/command/help.h"

#include <string.h>

enum { OPTION_BYTES = 128 };

/* Writes text, and escapes what roff would interpret. */
static void put(FILE *out, const char *text)
{
    if (*text == '.' || *text == '\'') {
        fputs("\\&", out);
    }
    for (; *text; text++) {
        if (*text == '\\') {
            fputs("\\e", out);
        } else if (*text == '-') {
            fputs("\\-", out);
        } else if (strncmp(text, "…", strlen("…")) == 0) {
            fputs("...", out);
            text += strlen("…") - 1;
        } else {
            fputc(*text, out);
        }
    }
}

static void put_line(FILE *out, const char *before, const char *text, const char *after)
{
    fputs(before, out);
    put(out, text);
    fputs(after, out);
}

static void put_option(FILE *out, const struct cli_item *option)
{
    char left[OPTION_BYTES];
    help_option_text(option, 0, left, sizeof left);
    put_line(out, ".TP\n.B ", left, "\n");
    put(out, option->help);
    if (option->fallback) {
        put_line(out, " (default: ", option->fallback, ")");
    }
    fputc('\n', out);
}

static void put_example(FILE *out, const struct cli_item *example)
{
    put_line(out, ".PP\n.nf\n.RS\n", example->name, "\n.RE\n.fi\n");
    if (*example->help) {
        put_line(out, ".RS\n", example->help, "\n.RE\n");
    }
}

static void put_command(FILE *out, const struct cli_command *command)
{
    fprintf(out, ".SS %s %s ", cli_tool->name, command->name);
    put_line(out, "", command->operands, "\n");
    put_line(out, "", command->summary, ".\n");
    if (*command->detail) {
        put_line(out, ".PP\n", command->detail, "\n");
    }
    for (const struct cli_item *o = NULL; (o = cli_next(command, o, CLI_ITEM_OPTION));) {
        put_option(out, o);
    }
    for (const struct cli_item *e = NULL; (e = cli_next(command, e, CLI_ITEM_EXAMPLE));) {
        put_example(out, e);
    }
}

void help_manual(FILE *out)
{
    fprintf(out, ".TH \"%s\" 1 \"\" \"muster " MUSTER_VERSION "\" \"User Commands\"\n.SH NAME\n",
            cli_tool->name);
    fprintf(out, "%s \\- %s\n.SH SYNOPSIS\n.B %s\n", cli_tool->name, cli_tool->title,
            cli_tool->name);
    fprintf(out, ".I COMMAND\n[\\fIOPTION\\fR...]\n.SH COMMANDS\n");
    for (size_t i = 0; i < cli_tool->count; i++) {
        put_command(out, &cli_tool->commands[i]);
    }
    fprintf(out, ".SH ENVIRONMENT\n");
    for (const struct help_variable *v = help_variables; v->name; v++) {
        put_line(out, ".TP\n.B ", v->name, "\n");
        put_line(out, "", v->meaning, "\n");
    }
    fprintf(out, ".SH EXIT STATUS\n");
    for (const struct help_exit *e = help_exits; e->status; e++) {
        put_line(out, ".TP\n.B ", e->status, "\n");
        put_line(out, "", e->meaning, "\n");
    }
}
