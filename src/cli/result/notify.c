/* See notify.h. */
#include "cli/result/notify.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VARIABLES = 4, KILL_MS = 2000 };

struct notifier {
    uv_process_t process;
    uv_timer_t timer;
    bool ended;
    bool late; /* the command was told to end */
    int64_t status;
    int signal;
};

static void on_exit_of(uv_process_t *process, int64_t status, int signal)
{
    struct notifier *n = process->data;
    n->ended = true;
    n->status = status;
    n->signal = signal;
}

/* Ends the command and what it has started: it leads a session of its own. */
static void on_time(uv_timer_t *timer)
{
    struct notifier *n = timer->data;
    kill(-n->process.pid, n->late ? SIGKILL : SIGTERM);
    n->late = true;
    uv_timer_start(timer, on_time, KILL_MS, KILL_MS);
}

static void tell_failure(const struct notifier *n, const char *command)
{
    if (n->late) {
        cli_say("warning: --notify '%s' was ended: it took longer than %d s", command,
                NOTIFY_MS / 1000);
    } else if (n->signal) {
        cli_say("warning: --notify '%s' was killed by signal %d", command, n->signal);
    } else if (n->status) {
        cli_say("warning: --notify '%s' exited with code %lld", command, (long long)n->status);
    }
}

static bool is_ours(const char *variable)
{
    return strncmp(variable, "MUSTER_JOB_", strlen("MUSTER_JOB_")) == 0;
}

/* Makes the command's environment, from this process's and the job's variables; the caller frees
 * the list, and its first VARIABLES texts. NULL when out of memory. */
static char **make_environment(const json_t *report)
{
    size_t count = 0;
    while (environ[count]) {
        count++;
    }
    char **list = calloc(count + VARIABLES + 1, sizeof *list);
    if (!list) {
        return NULL;
    }
    const char *name = doc_text(report, "name", "");
    int r = asprintf(&list[0], "MUSTER_JOB_NAME=%s", name);
    r = r < 0 ? r : asprintf(&list[1], "MUSTER_JOB_STATE=%s", doc_text(report, "state", ""));
    r = r < 0 ? r
              : asprintf(&list[2], "MUSTER_JOB_EXIT_CODE=%lld",
                         (long long)doc_int(report, "exitCode", 0));
    r = r < 0 ? r : asprintf(&list[3], "MUSTER_JOB_MESSAGE=%s", doc_text(report, "message", ""));
    size_t used = VARIABLES;
    for (size_t i = 0; i < count; i++) {
        if (!is_ours(environ[i])) {
            list[used++] = environ[i];
        }
    }
    if (r < 0) {
        free(list); /* the run is over: the texts of asprintf are freed with the process */
        return NULL;
    }
    return list;
}

static int start(struct cli *cli, struct notifier *n, const char *command, char **environment)
{
    char *words[] = {"sh", "-c", (char *)(uintptr_t)command, NULL};
    uv_stdio_container_t stdio[] = {
        {.flags = UV_IGNORE},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
    };
    const uv_process_options_t options = {
        .file = "/bin/sh",
        .args = words,
        .env = environment,
        .exit_cb = on_exit_of,
        .stdio = stdio,
        .stdio_count = 3,
        .flags = UV_PROCESS_DETACHED,
    };
    n->process.data = n;
    return uv_spawn(&cli->loop, &n->process, &options);
}

static void wait_for(struct cli *cli, struct notifier *n)
{
    uv_timer_init(&cli->loop, &n->timer);
    n->timer.data = n;
    uv_timer_start(&n->timer, on_time, NOTIFY_MS, 0);
    while (!n->ended) {
        uv_run(&cli->loop, UV_RUN_ONCE);
    }
    uv_close((uv_handle_t *)&n->timer, NULL);
}

static void run_command(struct cli *cli, const char *command, const json_t *report)
{
    struct notifier n = {0};
    char **environment = make_environment(report);
    int r = environment ? start(cli, &n, command, environment) : UV_ENOMEM;
    if (r < 0) {
        cli_say("warning: --notify '%s': %s", command, uv_strerror(r));
    } else {
        wait_for(cli, &n);
        tell_failure(&n, command);
    }
    if (environment) { /* the handle must be closed also if uv_spawn failed */
        uv_close((uv_handle_t *)&n.process, NULL);
        uv_run(&cli->loop, UV_RUN_NOWAIT);
        for (size_t i = 0; i < VARIABLES; i++) {
            free(environment[i]);
        }
        free(environment);
    }
}

void notify_all(struct cli *cli, const char *command, const json_t *reports, const char *name,
                int failed)
{
    size_t i;
    json_t *report;
    json_array_foreach (reports, i, report) {
        run_command(cli, command, report);
    }
    if (i == 0 && failed < 0) {
        muster_auto(doc) json_t *error =
            json_pack("{s:s, s:s, s:i, s:s}", "name", name, "state", "Error", "exitCode",
                      muster_code_exit(failed), "message", cli->err.text);
        run_command(cli, command, error);
    }
}
