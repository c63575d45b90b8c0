/* See command.h. */
#include "cli/command/command.h"

#include <string.h>

const struct cli_item cli_help_option = {
    CLI_ITEM_OPTION, "help", 'h', NULL, NULL, "print this text",
};

/* --nproc_per_node means --nproc-per-node, as in Python programs. */
bool cli_same_name(const char *name, const char *given, size_t length)
{
    size_t i = 0;
    for (; i < length && name[i]; i++) {
        char a = name[i] == '_' ? '-' : name[i];
        char b = given[i] == '_' ? '-' : given[i];
        if (a != b) {
            return false;
        }
    }
    return i == length && !name[i];
}

static bool is_option(const struct cli_item *item, const char *name, size_t length, char letter)
{
    return name ? cli_same_name(item->name, name, length) : item->letter == letter;
}

const struct cli_item *cli_option_find(const struct cli_command *command, const char *name,
                                       size_t length, char letter)
{
    for (const struct cli_item *o = NULL; (o = cli_next(command, o, CLI_ITEM_OPTION));) {
        if (is_option(o, name, length, letter)) {
            return o;
        }
    }
    return is_option(&cli_help_option, name, length, letter) ? &cli_help_option : NULL;
}

const struct cli_item *cli_next(const struct cli_command *command, const struct cli_item *at,
                                enum cli_item_kind kind)
{
    for (at = at ? at + 1 : command->items; at->kind != CLI_ITEM_END; at++) {
        if (at->kind == kind) {
            return at;
        }
    }
    return NULL;
}
