/* Names of environment variables: what passes from a shell to the ranks of its job, what does not,
 * and what muster sets. docs/environment.md says the same to users (submit_test holds the two
 * together).
 *
 * Layer: pure (the environment comes in as data). Thread: any.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

enum submit_kind {
    SUBMIT_LISTED = 1,   /* `run -f`, create and apply take it along: programs are found by it, and
                            speak the user's language; nothing secret */
    SUBMIT_LAUNCHER = 2, /* a launcher sets it: of no use, or harm, to ranks of another one */
    SUBMIT_OURS = 4,     /* set for each rank; nobody can ask for another value */
    SUBMIT_LOCAL = 8,    /* where things lie on this machine: no business of a container's image */
};

/* '*' at the end of a pattern stands for any text, but not for none. */
struct submit_rule {
    const char *pattern;
    unsigned kinds;
};
extern const struct submit_rule submit_rules[];
extern const size_t submit_rule_count;

/* Whether the name fits a rule of that kind. */
bool submit_is(enum submit_kind kind, const char *name);

/* {"NAME":"value"…} of the listed ones of a NULL-terminated "NAME=value" list; new reference. What
 * is not UTF-8 stays out. */
json_t *submit_capture(char *const *environment);
