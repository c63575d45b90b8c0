/* The python3s of this machine: which has a package; and the `python` of workers' commands, on
 * machines that call it python3 only.
 *
 * Layer: cli.
 */
#pragma once

#include "cli/command/cli.h"

/* The first python3 of PATH that has the module; NULL: none. The caller frees. */
char *python_with(const char *module);

/* Gives workers a `python` where this shell finds none: the first python3 of PATH that has torch
 * (else the first), by a script in a folder at the end of their PATH. */
int python_give(struct cli *cli);
