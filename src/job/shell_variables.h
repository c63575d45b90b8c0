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
    VARIABLE_LISTED = 1, /* `run -f`, create and apply take it along: programs are found by it, and
                          speak the user's language; nothing secret */
    VARIABLE_LAUNCHER = 2, /* a launcher sets it: of no use, or harm, to ranks of another one */
    VARIABLE_OURS = 4,     /* set for each rank; nobody can ask for another value */
    VARIABLE_LOCAL = 8, /* where things lie on this machine: no business of a container's image */
    VARIABLE_OPERATOR = 16, /* control_environment sets it over what the pod's template says */
};

/* '*' at the end of a pattern stands for any text, but not for none. */
struct shell_variable {
    const char *pattern;
    unsigned kinds;
};
extern const struct shell_variable shell_variables[];
extern const size_t shell_variable_count;

/* Whether the name fits a rule of that kind. */
bool shell_variable_is(enum shell_variable_kind kind, const char *name);

/* {"NAME":"value"…} of the listed ones of a NULL-terminated "NAME=value" list; new reference. What
 * is not UTF-8 stays out. */
json_t *shell_variables_capture(char *const *environment);
