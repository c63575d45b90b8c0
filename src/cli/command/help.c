/* Prints --help, of everything and of each verb. */
#include "cli/command/help.h"

#include <string.h>

enum { WIDTH = 96, OPTION_COLUMN = 30, OPTION_BYTES = 128 };

const struct help_exit help_exits[] = {
    {"0", "the job succeeded; the command did what it was asked"},
    {"1-127", "run: what the first failing container exited with"},
    {"128+n", "run: signal n ended the first failing container"},
    {"124", "run: the job's deadline passed"},
    {"130, 143, 129", "run: ended by Ctrl-C, SIGTERM, SIGHUP (not under nohup)"},
    {"141", "who read the output has left (muster … | head); run: which ended the job"},
    {"64", "a wrong command line"},
    {"65", "a wrong job file"},
    {"66", "no such file or object"},
    {"69", "the controller is not available"},
    {"73", "cannot create: exists already, or the state folder cannot be written"},
    {"75", "timed out, or changed meanwhile: try again"},
    {"70, 71, 74, 76-78", "internal, system, input/output, protocol, permission, configuration"},
    {NULL, NULL},
};

const struct help_variable help_variables[] = {
    {"MUSTER_HOME", "the folder of all state (default: $XDG_STATE_HOME/muster, else "
                    "~/.local/state/muster)"},
    {"MUSTER_NO_START", "when set, no command starts a controller"},
    {"NO_COLOR", "when set, no colours on a terminal"},
    {NULL, NULL},
};

void help_option_text(const struct cli_item *option, int aligned, char *ret, size_t size)
{
    char letter[8] = "";
    if (option->letter) {
        snprintf(letter, sizeof letter, "-%c, ", option->letter);
    } else if (aligned) {
        snprintf(letter, sizeof letter, "    ");
    }
    snprintf(ret, size, "%s--%s%s%s", letter, option->name, option->argument ? " " : "",
             option->argument ? option->argument : "");
}

/* Prints words from the current column on, broken before WIDTH, continued at `indent`. */
static void print_wrapped(FILE *out, const char *text, size_t indent)
{
    size_t column = indent;
    for (const char *at = text; *at; at += strspn(at, " ")) {
        size_t word = strcspn(at, " ");
        if (column > indent && column + 1 + word > WIDTH) {
            fprintf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', out);
            column++;
        }
        fprintf(out, "%.*s", (int)word, at);
        column += word;
        at += word;
    }
    fputc('\n', out);
}

static void print_option(FILE *out, const struct cli_item *option)
{
    char left[OPTION_BYTES];
    help_option_text(option, 1, left, sizeof left);
    fprintf(out, "  %-*s", OPTION_COLUMN - 2, left);
    if (strlen(left) > OPTION_COLUMN - 3) {
        fprintf(out, "\n%*s", OPTION_COLUMN, "");
    }
    char help[512];
    snprintf(help, sizeof help, "%s%s%s%s", option->help, option->fallback ? " (default: " : "",
             option->fallback ? option->fallback : "", option->fallback ? ")" : "");
    print_wrapped(out, help, OPTION_COLUMN);
}

static void print_examples(FILE *out, const struct cli_command *command)
{
    const struct cli_item *e = cli_next(command, NULL, CLI_ITEM_EXAMPLE);
    if (e) {
        fprintf(out, "\nExamples:\n");
    }
    for (; e; e = cli_next(command, e, CLI_ITEM_EXAMPLE)) {
        fprintf(out, "  %s\n", e->name);
        if (*e->help) {
            fprintf(out, "      %s\n", e->help);
        }
    }
}

void help_command(const struct cli_command *command, FILE *out)
{
    fprintf(out, "Usage: %s %s [OPTION…]%s%s\n\n", cli_tool->name, command->name,
            *command->operands ? " " : "", command->operands);
    print_wrapped(out, command->summary, 0);
    if (*command->detail) {
        fputc('\n', out);
        print_wrapped(out, command->detail, 0);
    }
    fprintf(out, "\nOptions:\n");
    for (const struct cli_item *o = NULL; (o = cli_next(command, o, CLI_ITEM_OPTION));) {
        print_option(out, o);
    }
    print_option(out, &cli_help_option);
    print_examples(out, command);
}

void help_all(FILE *out)
{
    fprintf(out, "Usage: %s COMMAND [OPTION…]\n\n%s\n\nCommands:\n", cli_tool->name,
            cli_tool->summary);
    for (size_t i = 0; i < cli_tool->count; i++) {
        fprintf(out, "  %-12s%s\n", cli_tool->commands[i].name, cli_tool->commands[i].summary);
    }
    fprintf(out, "\n%s COMMAND --help says more about each.\n\nEnvironment:\n", cli_tool->name);
    for (const struct help_variable *v = help_variables; v->name; v++) {
        fprintf(out, "  %-19s", v->name);
        print_wrapped(out, v->meaning, 21);
    }
    fprintf(out, "\nExit status:\n");
    for (const struct help_exit *e = help_exits; e->status; e++) {
        fprintf(out, "  %-19s%s\n", e->status, e->meaning);
    }
}
