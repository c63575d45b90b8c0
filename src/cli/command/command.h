/* The description of a command: its words, options and examples.
 *
 * Layer: cli; pure. Static data.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct cli;

enum cli_item_kind { CLI_ITEM_END, CLI_ITEM_OPTION, CLI_ITEM_EXAMPLE };

/* A row under a command: an option or an example. */
struct cli_item {
    enum cli_item_kind kind;
    const char *name;     /* the option's long name; the example's command line */
    char letter;          /* 0: none */
    const char *argument; /* NULL: a flag */
    const char *fallback; /* the value when not given, or NULL */
    const char *help;
};

struct cli_command {
    const char *name;
    /* Runs the verb: returns an exit status, or a negative muster code with cli->err filled. NULL:
     * the verb is another program of the binary. */
    int (*run)(struct cli *cli);
    const char *operands;  /* "KIND [NAME…]" */
    const char *completes; /* what operands are: file, kind, job, pod, verb; or "=these words" */
    const char *summary;
    const char *detail; /* "" when the summary says all */
    const struct cli_item *items;
};

/* Whether both are the same word; - and _ are equal. */
bool cli_same_name(const char *name, const char *given, size_t length);

/* Finds an option by its long name, or by its letter (name NULL); NULL when the command has no such
 * option. Every command has --help. */
const struct cli_item *cli_option_find(const struct cli_command *command, const char *name,
                                       size_t length, char letter);

/* A program whose name the binary may have: its commands, and the word with which its messages
 * begin. */
struct cli_tool {
    const char *name;  /* "muster" or "elasticdl" */
    const char *title; /* in the name's line of the man page */
    const char *summary;
    const struct cli_command *commands;
    size_t count;
};
extern const struct cli_tool *cli_tool; /* set once, before anything is read */

extern const struct cli_item cli_help_option;

/* The next row of this kind after `at` (NULL: the first such row), NULL at the end. */
const struct cli_item *cli_next(const struct cli_command *command, const struct cli_item *at,
                                enum cli_item_kind kind);
