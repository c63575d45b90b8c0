/* Runs an exec plugin. See config/exec_plugin.h. */
#include "kube/config/exec_plugin.h"

#include "base/base64.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/text.h"
#include "base/time/clock.h"
#include "base/variables.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORDS_MAX = 256, CANNOT_START = 127, READ_BYTES = 4096 };

#define GROUP "client.authentication.k8s.io/"

extern char **environ;

int exec_plugin_check(const json_t *exec, struct muster_err *err)
{
    static const char *const versions[] = {GROUP "v1", GROUP "v1beta1"};
    static const char *const modes[] = {"Never", "IfAvailable", "Always"};
    const char *version = doc_text(exec, "apiVersion", "");
    bool newest = strcmp(version, GROUP "v1") == 0;
    if (!*doc_text(exec, "command", "")) {
        return muster_fail(err, MUSTER_ECONFIG, "exec names no command");
    }
    if (!text_is_any_of(version, versions, 2)) {
        return muster_fail(err, MUSTER_EUNSUPPORTED,
                           "exec.apiVersion must be " GROUP "v1 or v1beta1, not \"%.100s\"",
                           version);
    }
    if (!text_is_any_of(doc_text(exec, "interactiveMode", newest ? "" : "IfAvailable"), modes, 3)) {
        return muster_fail(err, MUSTER_ECONFIG,
                           "exec.interactiveMode must be Never, IfAvailable or Always");
    }
    if (json_array_size(doc_at(exec, "args")) + 2 > WORDS_MAX ||
        json_array_size(doc_at(exec, "env")) + 2 > WORDS_MAX) {
        return muster_fail(err, MUSTER_ETOOBIG, "exec has more than %d words", WORDS_MAX - 2);
    }
    return 0;
}

/* ---- What the plugin gets ---- */

struct plugin {
    char *words[WORDS_MAX]; /* borrowed, NULL-terminated */
    char *own[WORDS_MAX];   /* "NAME=value": KUBERNETES_EXEC_INFO comes first */
    char **env;
    char *path; /* of the command, if it contains a slash */
    bool interactive;
};

static void plugin_done(struct plugin *p)
{
    for (size_t i = 0; i < WORDS_MAX && p->own[i]; i++) {
        free(p->own[i]);
    }
    free(p->env);
    free(p->path);
}

static json_t *cluster_of(const struct target *t)
{
    struct buf ca;
    buf_init(&ca, EXEC_OUTPUT_BYTES_MAX);
    base64_encode(t->ca_pem ? t->ca_pem : "", t->ca_pem ? strlen(t->ca_pem) : 0, &ca);
    json_t *cluster = json_pack("{s:s, s:s*, s:s*, s:s*}", "server", t->server,
                                "certificate-authority-data", ca.used ? buf_str(&ca) : NULL,
                                "tls-server-name", t->tls_server_name, "proxy-url", t->proxy);
    buf_done(&ca);
    if (t->insecure) {
        json_object_set_new(cluster, "insecure-skip-tls-verify", json_true());
    }
    return cluster;
}

static int give_info(struct plugin *p, const struct target *t, struct muster_err *err)
{
    muster_auto(doc) json_t *info =
        json_pack("{s:s, s:s, s:{s:b}}", "apiVersion", doc_text(t->exec, "apiVersion", ""), "kind",
                  "ExecCredential", "spec", "interactive", p->interactive);
    if (doc_bool(t->exec, "provideClusterInfo", false)) {
        json_object_set_new(json_object_get(info, "spec"), "cluster", cluster_of(t));
    }
    muster_auto(free) char *text = info ? doc_print(info) : NULL;
    if (!text || asprintf(&p->own[0], "KUBERNETES_EXEC_INFO=%s", text) < 0) {
        p->own[0] = NULL;
        return err_no_memory(err);
    }
    return 0;
}

static int give_environment(struct plugin *p, const struct target *t, struct muster_err *err)
{
    int r = give_info(p, t, err);
    size_t i;
    json_t *entry;
    json_array_foreach (doc_at(t->exec, "env"), i, entry) {
        if (r == 0 && asprintf(&p->own[i + 1], "%s=%s", doc_text(entry, "name", ""),
                               doc_text(entry, "value", "")) < 0) {
            p->own[i + 1] = NULL;
            r = err_no_memory(err);
        }
    }
    p->env = r < 0 ? NULL : variables_merge((char *const *const[]){p->own, environ}, 2);
    return p->env || r < 0 ? r : err_no_memory(err);
}

/* Sets the command. A name is looked up on PATH; a path with a slash is relative to the
 * kubeconfig's folder. */
static int give_words(struct plugin *p, const struct target *t, struct muster_err *err)
{
    const char *command = doc_text(t->exec, "command", "");
    bool below = strchr(command, '/') && *command != '/' && t->exec_folder && *t->exec_folder;
    if (asprintf(&p->path, "%s%s%s", below ? t->exec_folder : "", below ? "/" : "", command) < 0) {
        p->path = NULL;
        return err_no_memory(err);
    }
    p->words[0] = p->path;
    size_t i;
    json_t *word;
    json_array_foreach (doc_at(t->exec, "args"), i, word) {
        const char *text = json_string_value(word);
        p->words[i + 1] = (char *)(uintptr_t)(text ? text : "");
    }
    return 0;
}

static int prepare(struct plugin *p, const struct target *t, struct muster_err *err)
{
    const char *mode = doc_text(t->exec, "interactiveMode", "IfAvailable");
    bool terminal = isatty(STDIN_FILENO);
    p->interactive = terminal && strcmp(mode, "Never") != 0;
    if (!terminal && strcmp(mode, "Always") == 0) {
        return muster_fail(err, MUSTER_EUNAUTH,
                           "it asks for something on a terminal, and standard input is none");
    }
    int r = give_environment(p, t, err);
    return r < 0 ? r : give_words(p, t, err);
}

/* ---- Running the plugin ---- */

static void become(const struct plugin *p, int out)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    int null = p->interactive ? -1 : open("/dev/null", O_RDONLY | O_CLOEXEC);
    if ((p->interactive || dup2(null, STDIN_FILENO) >= 0) && dup2(out, STDOUT_FILENO) >= 0) {
        execvpe(p->words[0], p->words, p->env);
    }
    _exit(CANNOT_START);
}

/* Reads until the output ends, the time is over, or the plugin has printed more than it may. */
static int read_all(int fd, int64_t until_ms, struct buf *ret, struct muster_err *err)
{
    for (;;) {
        char bytes[READ_BYTES];
        struct pollfd waited = {.fd = fd, .events = POLLIN};
        int64_t left_ms = until_ms - clock_ms();
        int ready = left_ms > 0 ? poll(&waited, 1, (int)left_ms) : 0;
        if (ready == 0) {
            return muster_fail(err, MUSTER_ETIMEDOUT, "it took too long, and was ended");
        }
        ssize_t n = ready < 0 ? -1 : read(fd, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            explicit_bzero(bytes, sizeof bytes);
            return 0;
        }
        buf_add(ret, bytes, (size_t)n);
        if (buf_failed(ret)) {
            return muster_fail(err, MUSTER_ETOOBIG, "it printed more than %d bytes",
                               EXEC_OUTPUT_BYTES_MAX);
        }
    }
}

/* Waits for a plugin that has closed its output; it may use the rest of its time to end. */
static int wait_for(pid_t child, int64_t until_ms, int *ret_status)
{
    struct timespec pause = {.tv_nsec = 2000000};
    while (waitpid(child, ret_status, WNOHANG) == 0) {
        if (clock_ms() >= until_ms) {
            kill(child, SIGKILL);
            (void)waitpid(child, ret_status, 0);
            return MUSTER_ETIMEDOUT;
        }
        (void)nanosleep(&pause, NULL);
    }
    return 0;
}

static int explain(const struct target *t, int status, struct muster_err *err)
{
    const char *hint = doc_text(t->exec, "installHint", "");
    if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_START) {
        return muster_fail(err, MUSTER_EUNAUTH, "it cannot be started%s%.300s", *hint ? "; " : "",
                           hint);
    }
    return WIFSIGNALED(status)
               ? muster_fail(err, MUSTER_EUNAUTH, "it was killed by signal %d", WTERMSIG(status))
               : muster_fail(err, MUSTER_EUNAUTH, "it ended with exit status %d",
                             WEXITSTATUS(status));
}

static int run(const struct plugin *p, const struct target *t, int64_t limit_ms, struct buf *ret,
               struct muster_err *err)
{
    int fds[2];
    int status = 0;
    int64_t until_ms = clock_ms() + limit_ms;
    if (pipe2(fds, O_CLOEXEC) < 0) {
        return muster_fail(err, MUSTER_EOS, "no pipe to it: %s", strerror(errno));
    }
    pid_t child = fork();
    if (child == 0) {
        become(p, fds[1]);
    }
    close(fds[1]);
    muster_auto(close) int out = fds[0];
    if (child < 0) {
        return muster_fail(err, MUSTER_EOS, "it cannot be started: %s", strerror(errno));
    }
    int r = read_all(out, until_ms, ret, err);
    int late = wait_for(child, r < 0 ? 0 : until_ms, &status);
    if (r == 0 && late < 0) {
        r = muster_fail(err, late, "it took too long, and was ended");
    }
    return r < 0 || status == 0 ? r : explain(t, status, err);
}

int exec_plugin_run(const struct target *target, int64_t limit_ms, struct exec_credential *ret,
                    struct muster_err *err)
{
    struct plugin plugin = {0};
    struct buf output;
    buf_init(&output, EXEC_OUTPUT_BYTES_MAX);
    int r = prepare(&plugin, target, err);
    r = r < 0 ? r : run(&plugin, target, limit_ms, &output, err);
    r = r < 0 ? r
              : exec_credential_read(buf_str(&output), output.used,
                                     doc_text(target->exec, "apiVersion", ""), ret, err);
    if (output.data) {
        explicit_bzero(output.data, output.used);
    }
    buf_done(&output);
    plugin_done(&plugin);
    return r < 0 ? muster_wrap(err, "the user's exec plugin %.200s",
                               doc_text(target->exec, "command", ""))
                 : 0;
}
