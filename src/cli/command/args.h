/* A parsed command line.
 *
 *   --name VALUE  --name=VALUE  -x VALUE  -xVALUE  -abc (flags)  --  (operands only)
 * Options and operands mix freely, except after `run -n N`, where the first operand starts the
 * command that is to be run.
 *
 * Layer: cli; pure. Ownership: borrows argv; args_done frees the rest.
 */
#pragma once

#include "cli/command/command.h"

#include <muster/err.h>
#include <stdbool.h>
#include <stdint.h>

struct args_given {
    const struct cli_item *option;
    const struct cli_item *written; /* as written: the same, or a synonym (--nproc-per-node) */
    bool by_letter;
    const char *value; /* "" for a flag */
};

struct args {
    const struct cli_command *command;
    struct args_given *given; /* in the order of the line */
    size_t given_count;
    char **owned; /* the values of args_give */
    size_t owned_count;
    const char **operands; /* NULL-terminated */
    size_t operand_count;
    bool separated;         /* the line has a "--" */
    size_t separated_after; /* number of operands before the "--" */
};

/* Parses argv, which is without the program and the verb. MUSTER_EINVAL names the option and the
 * nearest known one. */
int args_parse(const struct cli_command *command, int argc, char **argv, struct args *ret,
               struct muster_err *err);
void args_done(struct args *args);

/* Adds --option=value, as if the line ended with it. Takes ownership of the value, also on failure;
 * a value of NULL gives MUSTER_ENOMEM. There is room for one such option for each operand and each
 * "--". */
int args_give(struct args *args, const char *option, char *value, struct muster_err *err);

/* Whether the command has that option at all: the functions below may be called only for options
 * that it has. */
bool args_has(const struct args *args, const char *option);
/* Whether the command has the option and the line gives it. */
bool args_has_flag(const struct args *args, const char *option);

/* The last value given, else the option's default, else NULL. Asserts that the option is known. */
const char *args_value(const struct args *args, const char *option);
/* The same, but NULL if that is "". */
const char *args_text(const struct args *args, const char *option);
bool args_flag(const struct args *args, const char *option);

enum { ARGS_SPELLING_BYTES = 72 };

/* The last spelling of the option in the line: "-n", "--nproc-per-node"; its long name if the line
 * does not have it. */
const char *args_spelling(const struct args *args, const char *option,
                          char ret[ARGS_SPELLING_BYTES]);

/* Returns the values of an option that may be repeated, one by one: the next after *at (start with
 * 0), NULL at the end. */
const char *args_each(const struct args *args, const char *option, size_t *at);

/* Reads a number in [least, most]. If the option is not given, *ret is its default, or unchanged if
 * it has none. */
int args_number(const struct args *args, const char *option, int64_t least, int64_t most,
                int64_t *ret, struct muster_err *err);
/* Reads a duration ("90", "90s", "1h30m", "250ms") as milliseconds, by the same rules. */
int args_duration(const struct args *args, const char *option, int64_t *ret_ms,
                  struct muster_err *err);
/* Reads one of the words, separated by '|', that the option's argument text lists. */
int args_choice(const struct args *args, const char *option, const char **ret,
                struct muster_err *err);
