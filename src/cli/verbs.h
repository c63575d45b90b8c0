/* The verbs, one file each; see cli_command.run. */
#pragma once

#include "cli/cli.h"

#define COMMAND(verb, operands, completes, summary, detail) int cli_##verb(struct cli *cli);
#define OPTION(name, letter, argument, otherwise, help)
#define EXAMPLE(line, what)
#define END
#include "cli/commands.def"
#undef COMMAND
#undef OPTION
#undef EXAMPLE
#undef END
