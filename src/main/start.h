/* The first steps of each of our programs. */
#pragma once

#include <stdbool.h>

/* Makes sure that descriptors 0, 1 and 2 are open, that a write past `ulimit -f` fails, and that as
 * many files may be open as the hard limit permits. If the stack (`ulimit -s`) or the number of
 * files (`ulimit -n`) is too small, prints this and ends the process. */
void start_process(void);

/* Whether --help or -h is among the words from `first` on. */
bool start_asks_for_help(int argc, char **argv, int first);
