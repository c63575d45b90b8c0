/* Decides what the words after `muster run` mean: a job's file, or a command that lacks its -n or
 * its python3.
 *
 * Layer: cli; looks at files.
 */
#pragma once

#include "cli/command/cli.h"

/* Without -n: MUSTER_EINVAL says how to run a script or program that is among the operands, which
 * are job files otherwise. */
int program_check_files(struct cli *cli);

/* With -n: MUSTER_EINVAL when the command is a Python script that exists here and cannot be
 * executed, or a launcher that muster replaces. */
int program_check_command(struct cli *cli);
