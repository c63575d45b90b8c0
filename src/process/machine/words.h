/* What the kernel refuses of a container's words, known before it is started.
 *
 * Layer: services. Thread: any.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

enum { WORDS_FAULT_BYTES = 192, WORDS_PATH_BYTES = 48 };

struct words_fault {
    char path[WORDS_PATH_BYTES]; /* within the container: "args[3]"; "" for all of it */
    char text[WORDS_FAULT_BYTES];
    const char *hint; /* static */
};

/* execve(2): a word, or a variable of env with its name, over 32 pages, or command and args
 * together over most_bytes: a quarter of the stack's limit (sysconf(_SC_ARG_MAX)), WORDS_BYTES_MAX
 * at most. False: nothing. What $(NAME) makes of them is not known here. */
bool words_fault(const json_t *container, long most_bytes, struct words_fault *ret);

enum { WORDS_BYTES_MAX = 6 << 20 };
