/* Options and words of torchrun and mpirun that users type, and the messages about them.
 *
 * Layer: cli; pure. Static texts.
 */
#pragma once

#include <stdbool.h>

/* "torchrun's --nnodes: …" for a long option of theirs (without "--") that run does not have, else
 * NULL. */
const char *torchrun_option(const char *name);
/* The same of a letter ('m', 'x'). */
const char *torchrun_letter(char letter);

/* A file of these endings is a program, never a job. */
bool torchrun_is_script(const char *word);
/* python3, bash, torchrun …: programs that start a script. */
bool torchrun_is_launcher(const char *word);
/* The word as a shell takes it back: in quotes where it has blanks. */
void torchrun_quote(const char *word, char *ret, unsigned ret_bytes);
/* "python3 train.py" of train.py, "train.sh" of itself: the words to type, in ret. */
void torchrun_command(const char *word, char *ret, unsigned ret_bytes);
