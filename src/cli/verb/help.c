/* muster help [COMMAND]. Hidden forms print the man page, the completion and docs/cli.md. */
#include "cli/command/help.h"
#include "cli/command/commands.h"
#include "cli/command/verbs.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *word;
    void (*print)(FILE *out);
} forms[] = {
    {"--man", help_manual},
    {"--completion", help_completion},
    {"--markdown", help_markdown},
};

int cli_help(struct cli *cli)
{
    const char *topic = cli->args.operands[0];
    if (!topic) {
        help_all(stdout);
        return 0;
    }
    const struct cli_command *command = cli_command_find(topic);
    if (!command) {
        return muster_fail(&cli->err, MUSTER_EINVAL,
                           "help: there is no command '%s' (%s --help lists them)", topic,
                           cli_tool->name);
    }
    help_command(command, stdout);
    return 0;
}

int elasticdl_help(struct cli *cli)
{
    return cli_help(cli);
}

bool help_generate(const char *form, FILE *out)
{
    if (strcmp(cli_tool->name, "elasticdl") == 0 && strcmp(form, "--markdown") == 0) {
        help_flags(out);
        return true;
    }
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (strcmp(form, forms[i].word) == 0) {
            forms[i].print(out);
            return true;
        }
    }
    return false;
}
