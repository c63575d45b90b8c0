/* See commands.h. */
#include "cli/command/commands.h"

#include "cli/command/verbs.h"

#include <string.h>

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
const struct cli_command cli_commands[] = {
#include "cli/command/commands.def"
};
const size_t cli_command_count = sizeof cli_commands / sizeof cli_commands[0];

#undef COMMAND
#define COMMAND(verb, operands, completes, summary, detail)                                        \
    {                                                                                              \
#verb, elasticdl_##verb, operands, completes, summary, detail, (const struct cli_item[])   \
        {
static const struct cli_command elasticdl_commands[] = {
#include "cli/command/elasticdl_commands.def"
};
#undef COMMAND
#undef PROGRAM
#undef OPTION
#undef EXAMPLE
#undef END

static const struct cli_tool tools[] = {
    {"muster", "distributed training: a PyTorchJob on this machine or on a cluster",
     "Distributed training: a PyTorchJob on this machine or on a cluster.", cli_commands,
     sizeof cli_commands / sizeof cli_commands[0]},
    {"elasticdl", "ElasticDL's commands, done by muster",
     "ElasticDL's commands, done by muster: elastic training on this machine. muster get, logs, "
     "scale,\ndelete … show and change the jobs.",
     elasticdl_commands, sizeof elasticdl_commands / sizeof elasticdl_commands[0]},
};
const struct cli_tool *cli_tool = &tools[0];

void cli_tool_choose(const char *program)
{
    const char *slash = strrchr(program, '/');
    for (size_t i = 0; i < sizeof tools / sizeof tools[0]; i++) {
        if (strcmp(slash ? slash + 1 : program, tools[i].name) == 0) {
            cli_tool = &tools[i];
        }
    }
}

const struct cli_command *cli_command_find(const char *name)
{
    for (size_t i = 0; i < cli_tool->count; i++) {
        if (strcmp(cli_tool->commands[i].name, name) == 0) {
            return &cli_tool->commands[i];
        }
    }
    return NULL;
}
