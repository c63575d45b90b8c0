/* Names of environment variables: what passes from a shell to the ranks of its job, what does not,
 * and what muster sets. docs/environment.md says the same to users (shell_variables_test holds the
 * two together).
 *
 * Layer: pure (the environment comes in as data). Thread: any.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

enum shell_variable_kind {
    VARIABLE_LISTED = 1, /* `run -f`, create and apply pass it on: programs are found by it, or use
                            the user's language by it; nothing secret */
    VARIABLE_LAUNCHER = 2, /* a launcher sets it: useless or harmful to ranks of another launcher */
    VARIABLE_OURS = 4,     /* set for each rank; users cannot set another value */
    VARIABLE_LOCAL = 8,    /* paths and settings of this machine: not for a container's image */
    VARIABLE_OPERATOR = 16, /* control_environment sets it, whatever the pod's template says */
};

/* '*' at the end of a pattern matches any text of at least one character. */
struct shell_variable {
    const char *pattern;
    unsigned kinds;
};
extern const struct shell_variable shell_variables[];
extern const size_t shell_variable_count;

/* Whether the name matches a rule of that kind. */
bool shell_variable_is(enum shell_variable_kind kind, const char *name);

/* Returns {"NAME":"value"…} for the listed variables of a NULL-terminated "NAME=value" list, as a
 * new reference. Values that are not UTF-8 are left out. */
json_t *shell_variables_capture(char *const *environment);
