/* All commands as a table, made from commands.def and elasticdl_commands.def.
 *
 * Layer: cli; pure. Static data. Nobody below the verbs knows it.
 */
#pragma once

#include "cli/command/command.h"

extern const struct cli_command cli_commands[];
extern const size_t cli_command_count;

/* By the name that the binary was called by; one that is no tool's changes nothing. */
void cli_tool_choose(const char *program);

/* Of the tool; NULL when there is none of that name. */
const struct cli_command *cli_command_find(const char *name);
