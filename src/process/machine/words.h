/* Finds out before the start of a container which of its words the kernel would refuse.
 *
 * Layer: services. Thread: any.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

enum { WORDS_FAULT_BYTES = 192, WORDS_PATH_BYTES = 320 };

struct words_fault {
    char path[WORDS_PATH_BYTES]; /* "spec.containers[0].args[3]", or that of the container */
    char text[WORDS_FAULT_BYTES];
    const char *hint; /* static */
};

/* Checks the limits of execve(2): a word, or a variable of env with its name, may have up to 32
 * pages, and command and args together most_bytes: a quarter of the stack's limit
 * (sysconf(_SC_ARG_MAX)), WORDS_BYTES_MAX at most. `at` is the container's path. Returns false if
 * there is no fault. The lengths are those before $(NAME) is expanded. */
bool words_fault(const json_t *container, const char *at, long most_bytes, struct words_fault *ret);

enum { WORDS_BYTES_MAX = 6 << 20 };
