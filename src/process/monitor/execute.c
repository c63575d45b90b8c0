/* See execute.h. */
#include "process/monitor/execute.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/system/nofile_limit.h"
#include "base/system/soft_limits.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NOT_FOUND = 127, NOT_EXECUTABLE = 126, NOT_SET_UP = 128, INTERPRETER_BYTES = 256 };

struct failure {
    int code;
    struct muster_err err;
};

static void fail(struct failure *failure, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void fail(struct failure *failure, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)muster_vfail(&failure->err, MUSTER_EOS, format, args);
    va_end(args);
    failure->code = code;
}

static bool say_hello(int control_fd)
{
    const struct monitor_message hello = {.kind = MONITOR_HELLO};
    return send(control_fd, &hello, sizeof hello, MSG_NOSIGNAL) == (ssize_t)sizeof hello;
}

/* Resets the signals that the supervisor and the monitor have changed: exec would pass them on. */
static void restore_signals(void)
{
    struct sigaction standard = {.sa_handler = SIG_DFL};
    for (int number = 1; number < NSIG; number++) {
        (void)sigaction(number, &standard, NULL);
    }
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static void tell_note(int control_fd, const char *text)
{
    struct monitor_message message = {.kind = MONITOR_NOTE};
    (void)snprintf(message.text, sizeof message.text, "%s", text);
    (void)send(control_fd, &message, sizeof message, MSG_NOSIGNAL);
}

/* If the machine does not permit a group, reports this and the container runs without it;
 * control_fd -1: it was reported before. */
static bool enter_groups(const int entrances[CGROUP_KINDS], int control_fd, struct failure *failure)
{
    for (enum cgroup_kind kind = 0; kind < CGROUP_KINDS; kind++) {
        int r = cgroup_enter(kind, entrances[kind], &failure->err);
        if (r < 0 && r != MUSTER_EUNSUPPORTED) {
            failure->code = NOT_SET_UP;
            return false;
        }
        if (r < 0 && control_fd >= 0) {
            tell_note(control_fd, failure->err.text);
        }
    }
    return true;
}

static bool become_user(const struct process_spec *spec, struct failure *failure)
{
    gid_t group = spec->group >= 0 ? (gid_t)spec->group : getegid();
    bool other_group = group != getegid();
    bool other_user = spec->user >= 0 && (uid_t)spec->user != geteuid();
    if (!other_group && !other_user) {
        return true;
    }
    if (setgroups(0, NULL) < 0 || setresgid(group, group, group) < 0 ||
        (other_user && setresuid((uid_t)spec->user, (uid_t)spec->user, (uid_t)spec->user) < 0)) {
        fail(failure, NOT_SET_UP,
             "runAsUser %lld, runAsGroup %lld: %s (only root may start processes of another user)",
             (long long)spec->user, (long long)spec->group, strerror(errno));
        return false;
    }
    return true;
}

static bool enter_folder(const struct process_spec *spec, struct failure *failure)
{
    if (chdir(spec->cwd) == 0) {
        return true;
    }
    fail(failure, NOT_SET_UP, "the working directory %s cannot be entered: %s", spec->cwd,
         strerror(errno));
    return false;
}

static bool set_streams(const int streams[3], struct failure *failure)
{
    for (int i = 0; i < 3; i++) {
        if (streams[i] < 0 || dup2(streams[i], i) < 0) {
            fail(failure, NOT_SET_UP, "cannot set up standard streams: %s", strerror(errno));
            return false;
        }
    }
    return true;
}

/* ---- Finding and executing the command ---- */

static const char *env_value(char *const *env, const char *name)
{
    size_t length = strlen(name);
    for (; *env; env++) {
        if (strncmp(*env, name, length) == 0 && (*env)[length] == '=') {
            return *env + length + 1;
        }
    }
    return NULL;
}

static bool is_executable_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

/* Searches as runc does: in the container's own PATH, for the first file that can be executed. */
static bool find_in_path(const char *command, char *const *env, char found[PATH_MAX])
{
    const char *at = env_value(env, "PATH");
    at = at ? at : "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    for (;;) {
        size_t length = strcspn(at, ":");
        int n = length ? snprintf(found, PATH_MAX, "%.*s/%s", (int)length, at, command)
                       : snprintf(found, PATH_MAX, "%s", command);
        if (n < PATH_MAX && is_executable_file(found)) {
            return true;
        }
        if (at[length] == '\0') {
            return false;
        }
        at += length + 1;
    }
}

static size_t bytes_of(char *const *words, const char **ret_longest)
{
    size_t sum = 0;
    size_t longest = 0;
    for (; *words; words++) {
        size_t bytes = strlen(*words) + 1;
        sum += bytes + sizeof *words;
        if (bytes > longest) {
            longest = bytes;
            *ret_longest = *words;
        }
    }
    return sum;
}

/* execve(2) failed: a word is over 128 KiB, or all of them are over a quarter of the stack's
 * limit. */
static void tell_too_big(const char *const *argv, char *const *env, struct failure *failure)
{
    const char *variable = "";
    const char *word = "";
    size_t environment = bytes_of(env, &variable);
    size_t arguments = bytes_of((char *const *)argv, &word);
    fail(failure, NOT_SET_UP,
         "exec: \"%.200s\": environment (%zu KiB; the largest variable, %.*s, %zu KiB) and "
         "arguments (%zu KiB) are too large: the kernel takes %ld KiB in all (ulimit -s is four "
         "times that) and 128 KiB each",
         argv[0], environment >> 10, (int)strcspn(variable, "="), variable, strlen(variable) >> 10,
         arguments >> 10, sysconf(_SC_ARG_MAX) >> 10);
}

/* Reports a script whose first line names a program that does not exist, or an ELF file whose
 * loader does not exist. */
static void tell_interpreter(const char *file, struct failure *failure)
{
    char line[INTERPRETER_BYTES] = "";
    muster_auto(close) int fd = open(file, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, line, sizeof line - 1) : 0;
    line[n > 0 ? n : 0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    size_t length = strlen(line);
    if (strncmp(line, "#!", 2) != 0) {
        fail(failure, NOT_EXECUTABLE,
             "exec: \"%s\": the loader that this program needs does not exist: it was made for "
             "another system",
             file);
    } else if (line[length - 1] == '\r') {
        fail(failure, NOT_EXECUTABLE,
             "exec: \"%s\": its first line ends with a carriage return: the file has Windows line "
             "ends; sed -i 's/\\r$//' removes them",
             file);
    } else {
        fail(failure, NOT_EXECUTABLE, "exec: \"%s\": its interpreter %s does not exist", file,
             line + 2 + strspn(line + 2, " "));
    }
}

static const char *refusal_of(int why, const struct stat *info)
{
    if (S_ISDIR(info->st_mode)) {
        return "is a directory";
    }
    return why == ENOEXEC ? "exec format error (a script begins with #! and its interpreter)"
                          : "permission denied";
}

static void execute_command(const char *const *argv, char *const *env, struct failure *failure)
{
    const char *command = argv[0];
    char found[PATH_MAX];
    if (strchr(command, '/')) {
        (void)snprintf(found, sizeof found, "%s", command);
    } else if (!find_in_path(command, env, found)) {
        fail(failure, NOT_FOUND, "exec: \"%s\": executable file not found in $PATH", command);
        return;
    }
    (void)execve(found, (char *const *)argv, env);
    int why = errno;
    struct stat info = {0};
    int missing = stat(found, &info);
    if (why == ENOENT && missing == 0) {
        tell_interpreter(found, failure);
    } else if (why == ENOENT || why == ENOTDIR) {
        fail(failure, NOT_FOUND, "exec: \"%s\": no such file or directory", found);
    } else if (why == EACCES || why == ENOEXEC || why == EISDIR || why == EPERM) {
        fail(failure, NOT_EXECUTABLE, "exec: \"%s\": %s", found, refusal_of(why, &info));
    } else if (why == E2BIG) {
        tell_too_big(argv, env, failure);
    } else {
        fail(failure, NOT_SET_UP, "exec: \"%s\": %s", found, strerror(why));
    }
}

/* Returns our mark, then the container's environment: the mark is first, so that a search through
 * /proc reads little. `term` ("TERM=…") replaces the container's own TERM. NULL when out of
 * memory. */
static char **with_mark(char *const *env, const char *mark, const char *term)
{
    size_t count = 0;
    while (env[count]) {
        count++;
    }
    char **all = calloc(count + 3, sizeof *all);
    size_t used = 0;
    if (!all) {
        return NULL;
    }
    all[used++] = (char *)mark;
    for (size_t i = 0; i < count; i++) {
        if (!term || strncmp(env[i], "TERM=", 5) != 0) {
            all[used++] = env[i];
        }
    }
    all[used] = (char *)term;
    return all;
}

/* Does what every process of a container does first. */
static void begin(const struct process_spec *spec)
{
    (void)setsid();
    restore_signals();
    nofile_limit_restore();
    soft_limits_set(doc_at(spec->doc, "softLimits"));
    (void)umask(spec->umask >= 0 ? (mode_t)spec->umask : 022);
}

static void tell_failure(const struct failure *failure, int control_fd, int exec_fd)
{
    struct monitor_message message = {.kind = MONITOR_FAILED, .code = failure->code};
    (void)snprintf(message.text, sizeof message.text, "%s", failure->err.text);
    (void)send(control_fd, &message, sizeof message, MSG_NOSIGNAL);
    (void)!write(exec_fd, "", 1);
}

__attribute__((noreturn)) void execute(const struct monitor_plan *plan, int input_fd,
                                       int control_fd, int exec_fd)
{
    const struct process_spec *spec = plan->spec;
    struct failure failure = {0};
    char **env = with_mark(spec->env, plan->mark, NULL);
    int empty = input_fd < 0 ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
    const int streams[3] = {input_fd < 0 ? empty : input_fd, plan->log_fd, plan->log_fd};
    begin(spec);
    if (!env) {
        fail(&failure, NOT_SET_UP, "out of memory");
    } else if (say_hello(control_fd) && enter_groups(plan->entrances, control_fd, &failure) &&
               set_streams(streams, &failure) && become_user(spec, &failure) &&
               enter_folder(spec, &failure)) {
        /* This must follow the change of user, which clears it. The container ends with its
         * monitor. */
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        execute_command(spec->argv, env, &failure);
    }
    tell_failure(&failure, control_fd, exec_fd);
    _exit(failure.code ? failure.code : NOT_SET_UP);
}

void execute_inside(const struct execute_inside *how)
{
    struct failure failure = {0};
    struct monitor_message message = {.kind = MONITOR_FAILED};
    char term[64];
    (void)snprintf(term, sizeof term, "TERM=%s", how->term ? how->term : "");
    char **env = with_mark(how->spec->env, how->mark, how->term ? term : NULL);
    begin(how->spec);
    if (!env) {
        fail(&failure, NOT_SET_UP, "out of memory");
    } else if (enter_groups(how->entrances, -1, &failure) && set_streams(how->streams, &failure) &&
               become_user(how->spec, &failure) && enter_folder(how->spec, &failure)) {
        if (how->term) {
            (void)ioctl(STDIN_FILENO, TIOCSCTTY, 0);
        }
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        execute_command(how->argv, env, &failure);
    }
    message.code = failure.code ? failure.code : NOT_SET_UP;
    (void)snprintf(message.text, sizeof message.text, "%s", failure.err.text);
    (void)!write(how->failure_fd, &message, sizeof message);
    _exit(message.code);
}
