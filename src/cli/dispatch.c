/* Finds the verb for argv, and makes an exit status of its result. */
#include "cli/dispatch.h"
#include "base/text.h"
#include "cli/submit/sources.h"

#include "cli/command/cli.h"
#include "cli/command/commands.h"
#include "cli/command/help.h"
#include "cli/submit/environment.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { EXIT_USAGE = 64, COMMANDS_MAX = 64 };

/* Whether only kubectl has this verb; kubectl can speak with the same controller. */
static bool is_kubectls(const char *name)
{
    static const char *const verbs[] = {
        "annotate", "api-resources", "attach", "auth",    "edit",    "explain", "label",
        "patch",    "port-forward",  "proxy",  "replace", "rollout", "set",
    };
    return text_is_any_of(name, verbs, sizeof verbs / sizeof verbs[0]);
}

/* Words of docker, slurm, torchrun and other programs, and the commands that do the same here. */
static const struct {
    const char *word;
    const char *here;
} words_here[] = {
    {"-V", "version"},           {"-v", "version"},           {"cancel", "delete job NAME"},
    {"kill", "delete job NAME"}, {"list", "get jobs"},        {"ls", "get jobs"},
    {"ps", "get pods"},          {"rm", "delete job NAME"},   {"start", "run"},
    {"status", "get jobs"},      {"stop", "delete job NAME"}, {"submit", "create FILE"},
};

static const char *word_here(const char *name)
{
    for (size_t i = 0; i < sizeof words_here / sizeof words_here[0]; i++) {
        if (strcmp(words_here[i].word, name) == 0) {
            return words_here[i].here;
        }
    }
    return NULL;
}

static int unknown_command(const char *name)
{
    const char *here = strcmp(cli_tool->name, "muster") == 0 ? word_here(name) : NULL;
    if (here) {
        cli_say("unknown command '%s'; here it is: muster %s (muster --help lists all)", name,
                here);
        return EXIT_USAGE;
    }
    if (is_kubectls(name)) {
        cli_say("unknown command '%s', which kubectl has: muster kubeconfig --write FILE, then "
                "kubectl --kubeconfig FILE %s …",
                name, name);
        return EXIT_USAGE;
    }
    const char *names[COMMANDS_MAX];
    for (size_t i = 0; i < cli_tool->count; i++) {
        names[i] = cli_tool->commands[i].name;
    }
    const char *near = text_nearest(name, names, cli_tool->count);
    if (near) {
        cli_say("unknown command '%s'; did you mean '%s'? (%s --help lists them)", name, near,
                cli_tool->name);
    } else {
        cli_say("unknown command '%s' (%s --help lists them)", name, cli_tool->name);
    }
    return EXIT_USAGE;
}

/* Prints what the API found wrong with single fields, one per line. */
static void print_causes(const struct cli *cli)
{
    const json_t *causes = cli->kube ? doc_at(kube_status(cli->kube), "details.causes") : NULL;
    if (json_array_size(causes) < 2) {
        return; /* a single cause is in the message already */
    }
    size_t i;
    json_t *cause;
    json_array_foreach (causes, i, cause) {
        fprintf(stderr, "  %s: %s\n", doc_text(cause, "field", ""), doc_text(cause, "message", ""));
    }
}

static int finish(struct cli *cli, int result)
{
    if (result < 0) {
        cli_say("%s", cli->err.text[0] ? cli->err.text : muster_code_text(result));
        print_causes(cli);
        result = muster_code_exit(result);
    }
    environment_free(cli->environment);
    kube_close(cli->kube);
    uv_run(&cli->loop, UV_RUN_DEFAULT);
    uv_loop_close(&cli->loop);
    sources_free(cli->sources);
    args_done(&cli->args);
    return result;
}

static int run_verb(const struct cli_command *command, int argc, char **argv)
{
    struct cli cli = {0};
    int r = args_parse(command, argc, argv, &cli.args, &cli.err);
    if (r < 0) {
        cli_say("%s", cli.err.text);
        return muster_code_exit(r);
    }
    if (args_flag(&cli.args, "help")) {
        help_command(command, stdout);
        args_done(&cli.args);
        return 0;
    }
    if (uv_loop_init(&cli.loop) < 0) {
        cli_say("cannot start an event loop: %s", strerror(errno));
        args_done(&cli.args);
        return muster_code_exit(MUSTER_EOS);
    }
    assert(command->run); /* src/main runs the other programs */
    r = cli_choose_cluster(&cli);
    return finish(&cli, r < 0 ? r : command->run(&cli));
}

static int run_words(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;
    if (!name) {
        help_all(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        help_all(stdout);
        return 0;
    }
    if (strcmp(name, "--version") == 0) {
        printf("%s " MUSTER_VERSION "\n", cli_tool->name);
        return 0;
    }
    if (strcmp(name, "help") == 0 && argc == 3 && help_generate(argv[2], stdout)) {
        return 0;
    }
    const struct cli_command *command = cli_command_find(name);
    return command ? run_verb(command, argc - 2, argv + 2) : unknown_command(name);
}

int cli_main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
    cli_tool_choose(argc > 0 ? argv[0] : "");
    int status = run_words(argc, argv);
    struct muster_err err = MUSTER_ERR_INIT;
    if (status == 0 && cli_print("", &err) < 0) { /* flushes what printf left in its buffer */
        cli_say("%s", err.text);
        status = muster_code_exit(err.code);
    }
    return status;
}
