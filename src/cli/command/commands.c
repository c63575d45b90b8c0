/* See commands.h. */
#include "cli/command/commands.h"

#include "cli/command/verbs.h"

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
#define OPTION(name, letter, argument, fallback, help)                                             \
    {CLI_ITEM_OPTION, name, letter, argument, fallback, help},
#define EXAMPLE(line, what) {CLI_ITEM_EXAMPLE, line, 0, NULL, NULL, what},
#define END                                                                                        \
    {                                                                                              \
        CLI_ITEM_END, NULL, 0, NULL, NULL, NULL                                                    \
    }                                                                                              \
    }                                                                                              \
    }                                                                                              \
    ,
#include "cli/command/commands.def"
#undef COMMAND
#undef PROGRAM
#undef OPTION
#undef EXAMPLE
#undef END
};
const size_t cli_command_count = sizeof cli_commands / sizeof cli_commands[0];

const struct cli_command *cli_command_find(const char *name)
{
    for (size_t i = 0; i < cli_command_count; i++) {
        if (strcmp(cli_commands[i].name, name) == 0) {
            return &cli_commands[i];
        }
    }
    return NULL;
}
