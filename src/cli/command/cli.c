/* What all verbs need: the connection to the controller, and output. See cli.h. */
#include "cli/command/cli.h"

#include "base/err.h"
#include "base/system/process_stat.h"
#include "base/yaml/yaml.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_stopped(pid_t pid)
{
    struct process_stat controller;
    return pid > 0 && process_stat_read(pid, &controller) && controller.state == 'T';
}

static void say_stopped(pid_t pid)
{
    cli_say("the controller (process %d) is stopped and does not answer; still waiting: kill -CONT "
            "%d continues it",
            (int)pid, (int)pid);
}

/* Whether the controller is stopped; prints this once. Looks up its process only if that is not
 * known or has ended. */
static bool look(const struct kube *kube, pid_t *controller, bool said)
{
    struct process_stat stat;
    if (*controller <= 0 || !process_stat_read(*controller, &stat)) {
        *controller = kube_controller_pid(kube);
    }
    bool stopped = is_stopped(*controller);
    if (stopped && !said) {
        say_stopped(*controller);
    }
    return stopped;
}

/* Tells the user why nothing happens; otherwise a slow request would be silent for a minute. */
static void say_slow(const struct kube *kube, int waited_s)
{
    pid_t pid = kube_controller_pid(kube);
    if (pid <= 0) { /* the controller may run in another container */
        cli_say("the controller has not answered for %d s; still waiting", waited_s);
    } else if (is_stopped(pid)) {
        say_stopped(pid);
    } else {
        cli_say("the controller (process %d) has not answered for %d s; still waiting (if it "
                "hangs: muster down --force)",
                (int)pid, waited_s);
    }
}

int cli_connect(struct cli *cli, enum kube_start start)
{
    const char *no_start = getenv("MUSTER_NO_START");
    if (cli->kube) {
        return 0;
    }
    if (no_start && *no_start) {
        start = KUBE_RUNNING;
    }
    int r = kube_open(&cli->loop, start, &cli->kube, &cli->err);
    if (r == 0) {
        kube_say_slow(cli->kube, say_slow);
        kube_look(cli->kube, look);
    }
    return r;
}

void cli_say(const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "%s: %s\n", cli_tool->name, text);
}

void cli_say_none(const struct cli *cli)
{
    const char *namespace = cli_namespace(cli);
    fprintf(stderr, namespace ? "No resources found in %s namespace.\n" : "No resources found.\n",
            namespace);
}

const char *cli_namespace(const struct cli *cli)
{
    if (args_has_flag(&cli->args, "all-namespaces")) {
        return NULL;
    }
    if (cli_on_cluster(cli) && !args_flag(&cli->args, "namespace")) {
        return kube_namespace(cli->kube);
    }
    return args_value(&cli->args, "namespace");
}

int cli_print(const char *text, struct muster_err *err)
{
    if (fputs(text, stdout) == EOF || fflush(stdout) == EOF) {
        if (errno == EPIPE) {
            signal(SIGPIPE, SIG_DFL); /* ignored for sockets, but a filter without a reader dies */
            raise(SIGPIPE);
        }
        return muster_fail(err, MUSTER_EIO, "cannot write to standard output: %s", strerror(errno));
    }
    return 0;
}

int cli_print_doc(const json_t *doc, const char *format, struct muster_err *err)
{
    bool yaml = strcmp(format, "yaml") == 0;
    muster_auto(free) char *text = yaml ? yaml_print(doc) : doc_print_pretty(doc);
    if (!text) {
        return err_no_memory(err);
    }
    int r = cli_print(text, err);
    size_t length = strlen(text);
    return r < 0 || (length > 0 && text[length - 1] == '\n') ? r : cli_print("\n", err);
}

int cli_print_next(const json_t *doc, size_t index, const char *format, struct muster_err *err)
{
    int r = index > 0 && strcmp(format, "yaml") == 0 ? cli_print("---\n", err) : 0;
    return r < 0 ? r : cli_print_doc(doc, format, err);
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
        return muster_fail(&cli->err, MUSTER_EINVAL, "%s: missing operand: %s %s %s", c->name,
                           cli_tool->name, c->name, c->operands);
    }
    if (cli->args.operand_count > most) {
        return muster_fail(&cli->err, MUSTER_EINVAL, "%s: unexpected operand '%s': %s %s %s",
                           c->name, cli->args.operands[most], cli_tool->name, c->name, c->operands);
    }
    return 0;
}
