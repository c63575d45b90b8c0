/* Options and words of torchrun and mpirun that users type, and the messages about them.
 *
 * Layer: cli; pure. Static texts.
 */
#pragma once

#include <stdbool.h>

/* The message "torchrun's --nnodes: …" for a long option of torchrun or mpirun (without "--") that
 * run does not have, else NULL. */
const char *torchrun_option(const char *name);
/* The same for a letter ('m', 'x'). */
const char *torchrun_letter(char letter);

/* Whether the word ends as a script does: it is then a program, never a job. */
bool torchrun_is_script(const char *word);
/* Whether the word is a program that starts a script: python3, bash, torchrun … */
bool torchrun_is_launcher(const char *word);
/* Writes the word as a shell must read it: in quotes if it has blanks. */
void torchrun_quote(const char *word, char *ret, unsigned ret_bytes);
/* Writes the command to type for the script `word` into ret: "python3 train.py" for train.py, "sh
 * train.sh" for train.sh. */
void torchrun_command(const char *word, char *ret, unsigned ret_bytes);
