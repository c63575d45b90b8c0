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
    const struct cli_item *written; /* the same, or one that stands for it (--nproc-per-node) */
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
    bool separated;         /* a "--" was there */
    size_t separated_after; /* how many operands came before it */
};

/* argv without the program and the verb. MUSTER_EINVAL names the option and the nearest known. */
int args_parse(const struct cli_command *command, int argc, char **argv, struct args *ret,
               struct muster_err *err);
void args_done(struct args *args);

/* Adds --option=value, as if the line ended with it. Takes the value over, also on failure; NULL is
 * MUSTER_ENOMEM. There is room for one for each operand and each "--". */
int args_give(struct args *args, const char *option, char *value, struct muster_err *err);

/* Whether the command has that option at all: the functions below may be asked only for options
 * that it has. */
bool args_has(const struct args *args, const char *option);
/* It has, and it is given. */
bool args_has_flag(const struct args *args, const char *option);

/* The last value given, else the option's default, else NULL. Asserts that the option is known. */
const char *args_value(const struct args *args, const char *option);
/* The same, NULL where that is "". */
const char *args_text(const struct args *args, const char *option);
bool args_flag(const struct args *args, const char *option);

enum { ARGS_SPELLING_BYTES = 72 };

/* An option as the line has it last: "-n", "--nproc-per-node"; by its name where it has none. */
const char *args_spelling(const struct args *args, const char *option,
                          char ret[ARGS_SPELLING_BYTES]);

/* The values of an option that may be repeated: next after *at (start with 0), NULL at the end. */
const char *args_each(const struct args *args, const char *option, size_t *at);

/* A number in [least, most]. When the option is not given, *ret is its default; untouched where it
 * has none. */
int args_number(const struct args *args, const char *option, int64_t least, int64_t most,
                int64_t *ret, struct muster_err *err);
/* "90", "90s", "1h30m", "250ms" as milliseconds; the same rules. */
int args_duration(const struct args *args, const char *option, int64_t *ret_ms,
                  struct muster_err *err);
/* One of `words`, separated by '|', as in the option's own argument text. */
int args_choice(const struct args *args, const char *option, const char **ret,
                struct muster_err *err);
