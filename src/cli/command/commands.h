/* All commands as a table, made from commands.def and elasticdl_commands.def.
 *
 * Layer: cli; pure. Static data. Nobody below the verbs knows it.
 */
#pragma once

#include "cli/command/command.h"

extern const struct cli_command cli_commands[];
extern const size_t cli_command_count;

/* Chooses the tool by the name under which the binary was called; any other name changes nothing.
 */
void cli_tool_choose(const char *program);

/* A command of the tool; NULL when there is none of that name. */
const struct cli_command *cli_command_find(const char *name);
