/* Gives workers a `python` for their commands, on machines that call it python3 only.
 *
 * Layer: cli.
 */
#pragma once

#include "cli/command/cli.h"

/* Where this shell finds no `python`, the workers find one: the first python3 of PATH that has
 * torch (else the first), by a script in a folder at the end of their PATH. */
int python_give(struct cli *cli);
