/* From argv to a verb, and from its result to an exit status. */
#include "cli/cli.h"

#include "base/yaml.h"
#include "cli/help.h"
#include "cli/verbs.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_USAGE = 64, COMMANDS_MAX = 64 };

static int unknown_command(const char *name)
{
    const char *names[COMMANDS_MAX];
    for (size_t i = 0; i < cli_command_count; i++) {
        names[i] = cli_commands[i].name;
    }
    const char *near = cli_nearest(name, names, cli_command_count);
    if (near) {
        cli_say("unknown command '%s'; did you mean '%s'? (muster --help lists them)", name, near);
    } else {
        cli_say("unknown command '%s' (muster --help lists them)", name);
    }
    return EXIT_USAGE;
}

/* What the API found wrong with single fields, a line each. */
static void print_causes(const struct cli *cli)
{
    const json_t *causes = cli->kube ? doc_at(kube_status(cli->kube), "details.causes") : NULL;
    if (json_array_size(causes) < 2) {
        return; /* a single one is in the message already */
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
    kube_close(cli->kube);
    uv_run(&cli->loop, UV_RUN_DEFAULT);
    uv_loop_close(&cli->loop);
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
    return finish(&cli, command->run(&cli));
}

int cli_main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
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
        printf("muster " MUSTER_VERSION "\n");
        return 0;
    }
    if (strcmp(name, "help") == 0 && argc == 3 && help_generate(argv[2], stdout)) {
        return 0;
    }
    const struct cli_command *command = cli_command_find(name);
    return command ? run_verb(command, argc - 2, argv + 2) : unknown_command(name);
}

int cli_connect(struct cli *cli, enum kube_start start)
{
    const char *no_start = getenv("MUSTER_NO_START");
    if (no_start && *no_start) {
        start = KUBE_RUNNING;
    }
    return kube_open(&cli->loop, start, &cli->kube, &cli->err);
}

void cli_say(const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "muster: %s\n", text);
}

static int64_t clock_ms(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t cli_now_ms(void)
{
    return clock_ms(CLOCK_MONOTONIC);
}

int64_t cli_now_unix_ms(void)
{
    return clock_ms(CLOCK_REALTIME);
}

static bool has_option(const struct args *args, const char *name)
{
    return cli_option_find(args->command, name, strlen(name), 0) != NULL;
}

const char *cli_namespace(const struct cli *cli)
{
    if (has_option(&cli->args, "all-namespaces") && args_flag(&cli->args, "all-namespaces")) {
        return NULL;
    }
    return args_value(&cli->args, "namespace");
}

int cli_print(const char *text, struct muster_err *err)
{
    if (fputs(text, stdout) == EOF || fflush(stdout) == EOF) {
        return muster_fail(err, MUSTER_EIO, "cannot write to standard output: %s", strerror(errno));
    }
    return 0;
}

int cli_print_doc(const json_t *doc, const char *format, struct muster_err *err)
{
    bool yaml = strcmp(format, "yaml") == 0;
    muster_auto(free) char *text = yaml ? yaml_print(doc) : doc_print_pretty(doc);
    if (!text) {
        return muster_fail(err, MUSTER_ENOMEM, "out of memory");
    }
    int r = cli_print(text, err);
    size_t length = strlen(text);
    return r < 0 || (length > 0 && text[length - 1] == '\n') ? r : cli_print("\n", err);
}

void cli_object_name(const json_t *object, char *ret, size_t size)
{
    const struct kube_resource *resource = kube_resource_of(object);
    const char *name = doc_text(object, "metadata.name", "");
    const char *version = doc_text(object, "apiVersion", "");
    const char *slash = strchr(version, '/');
    snprintf(ret, size, "%s%s%.*s/%s", resource ? resource->singular : "object", slash ? "." : "",
             slash ? (int)(slash - version) : 0, version, name);
}

int cli_expect_operands(struct cli *cli, size_t least, size_t most)
{
    const struct cli_command *c = cli->args.command;
    if (cli->args.operand_count < least) {
        return muster_fail(&cli->err, MUSTER_EINVAL, "%s: missing operand: muster %s %s", c->name,
                           c->name, c->operands);
    }
    if (cli->args.operand_count > most) {
        return muster_fail(&cli->err, MUSTER_EINVAL, "%s: unexpected operand '%s': muster %s %s",
                           c->name, cli->args.operands[most], c->name, c->operands);
    }
    return 0;
}
