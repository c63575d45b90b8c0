/* The verbs, one file each; see cli_command.run. */
#pragma once

#include "cli/command/cli.h"

#define COMMAND(verb, operands, completes, summary, detail) int cli_##verb(struct cli *cli);
#define PROGRAM(verb, operands, completes, summary, detail)
#define OPTION(name, letter, argument, fallback, help)
#define EXAMPLE(line, what)
#define END
#include "cli/command/commands.def"
#undef COMMAND
#define COMMAND(verb, operands, completes, summary, detail) int elasticdl_##verb(struct cli *cli);
#include "cli/command/elasticdl_commands.def"
#undef COMMAND
#undef PROGRAM
#undef OPTION
#undef EXAMPLE
#undef END
