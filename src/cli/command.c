/* See command.h. */
#include "cli/command.h"

#include "cli/verbs.h"

#include <string.h>

const struct cli_command cli_commands[] = {
#define COMMAND(verb, operands, completes, summary, detail)                                        \
    {                                                                                              \
#verb, cli_##verb, operands, completes, summary, detail, (const struct cli_item[])         \
        {
#define PROGRAM(verb, operands, completes, summary, detail)                                        \
    {                                                                                              \
#verb, NULL, operands, completes, summary, detail, (const struct cli_item[])               \
        {
#define OPTION(name, letter, argument, otherwise, help)                                            \
    {CLI_ITEM_OPTION, name, letter, argument, otherwise, help},
#define EXAMPLE(line, what) {CLI_ITEM_EXAMPLE, line, 0, NULL, NULL, what},
#define END                                                                                        \
    {                                                                                              \
        CLI_ITEM_END, NULL, 0, NULL, NULL, NULL                                                    \
    }                                                                                              \
    }                                                                                              \
    }                                                                                              \
    ,
#include "cli/commands.def"
#undef COMMAND
#undef PROGRAM
#undef OPTION
#undef EXAMPLE
#undef END
};
const size_t cli_command_count = sizeof cli_commands / sizeof cli_commands[0];

const struct cli_item cli_help_option = {
    CLI_ITEM_OPTION, "help", 'h', NULL, NULL, "print this text",
};

const struct cli_command *cli_command_find(const char *name)
{
    for (size_t i = 0; i < cli_command_count; i++) {
        if (strcmp(cli_commands[i].name, name) == 0) {
            return &cli_commands[i];
        }
    }
    return NULL;
}

static int is_option(const struct cli_item *item, const char *name, size_t length, char letter)
{
    return name ? strlen(item->name) == length && strncmp(item->name, name, length) == 0
                : item->letter == letter;
}

const struct cli_item *cli_option_find(const struct cli_command *command, const char *name,
                                       size_t length, char letter)
{
    for (const struct cli_item *o = NULL; (o = cli_next(command, o, CLI_ITEM_OPTION));) {
        if (is_option(o, name, length, letter)) {
            return o;
        }
    }
    return is_option(&cli_help_option, name, length, letter) ? &cli_help_option : NULL;
}

const struct cli_item *cli_next(const struct cli_command *command, const struct cli_item *at,
                                enum cli_item_kind kind)
{
    for (at = at ? at + 1 : command->items; at->kind != CLI_ITEM_END; at++) {
        if (at->kind == kind) {
            return at;
        }
    }
    return NULL;
}
