/* What each of our programs does first. */
#pragma once

#include <stdbool.h>

/* Descriptors 0, 1 and 2 are open, a write past `ulimit -f` fails, and as many files may be open as
 * the hard limit has. Too small a stack (`ulimit -s`) or too few files (`ulimit -n`) are
 * said, and end the process. */
void start_process(void);

/* --help or -h is among the words from `first` on. */
bool start_asks_for_help(int argc, char **argv, int first);
