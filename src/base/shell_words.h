/* Shell words: how `--image 'IMAGE=COMMAND'` and our command annotation are split; and how a word
 * is written so that it comes back.
 *
 * White space separates; '…' is literal; "…" knows \" \\ \$ and \`; a backslash outside quotes
 * takes the next character literally. Nothing is expanded. (POSIX shell, 2.2 Quoting.)
 *
 * Layer: base. Ownership: the caller frees with shell_free.
 */
#pragma once

#include "base/buf.h"

#include <muster/err.h>

/* *ret is a NULL-terminated array; empty text gives an empty array. Returns MUSTER_EDATA for an
 * open quote. */
int shell_split(const char *text, char ***ret, struct muster_err *err);
char **shell_free(char **words);

/* Adds the word so that a shell reads it as the same word: in single quotes if it has a character
 * that is not plain. */
void shell_quote(const char *word, struct buf *out);
