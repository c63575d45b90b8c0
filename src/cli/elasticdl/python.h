/* The python3s of this machine: which has a package; and the `python` of workers' commands, on
 * machines that call it python3 only.
 *
 * Layer: cli.
 */
#pragma once

#include "cli/command/cli.h"

/* The first python3 of PATH that has the module; NULL if there is none. The caller frees it. */
char *python_with(const char *module);

/* Gives workers a `python` if this shell finds none: a script, in a folder at the end of their
 * PATH, that calls the first python3 of PATH that has torch (else the first python3). */
int python_give(struct cli *cli);
