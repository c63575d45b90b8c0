/* See py_spy.h.
 *
 * Python records the numbers of its threads in its own PID namespace, and py-spy takes them for
 * numbers of its own /proc: outside the rank's namespace it reads the registers of other threads,
 * or of none. So py-spy runs in that namespace, with a /proc of it, but otherwise in this machine's
 * file system, where it is installed.
 */
#include "cli/pod/py_spy.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/time/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TEXT_BYTES_MAX = 256 << 10, PIECE_BYTES = 16 << 10, LIMIT_MS = 5000, WHY_BYTES = 512 };

/* The path of py-spy in PATH; NULL if it is not installed. The caller frees it. */
static char *find_program(void)
{
    const char *at = getenv("PATH");
    struct stat info;
    for (at = at ? at : ""; *at;) {
        size_t length = strcspn(at, ":");
        char *path = NULL;
        if (asprintf(&path, "%.*s/py-spy", (int)length, at) < 0) {
            return NULL;
        }
        if (length && access(path, X_OK) == 0 && stat(path, &info) == 0 && S_ISREG(info.st_mode)) {
            return path;
        }
        free(path);
        at += length + (at[length] == ':');
    }
    return NULL;
}

/* Whether the process runs Python: py-spy takes long to find out that it does not. */
static bool runs_python(long long pid)
{
    char path[64], program[PATH_MAX];
    (void)snprintf(path, sizeof path, "/proc/%lld/exe", pid);
    ssize_t length = readlink(path, program, sizeof program - 1);
    program[length < 0 ? 0 : length] = '\0';
    const char *slash = strrchr(program, '/');
    return slash && strncmp(slash + 1, "python", 6) == 0;
}

struct spy {
    const char *program;
    long long pid;
    long long inner_pid; /* its pid in its PID namespace; 0: that is ours */
    bool native;         /* frames of C and C++, too */
};

/* The pid of a process in its own PID namespace: the last number of NSpid in its status. 0: there
 * is only one, or the process has ended. */
static long long inner_pid(long long pid)
{
    char path[64], line[256];
    (void)snprintf(path, sizeof path, "/proc/%lld/status", pid);
    FILE *status = fopen(path, "re");
    long long inner = 0;
    while (status && fgets(line, sizeof line, status)) {
        const char *last = strrchr(line, '\t');
        if (strncmp(line, "NSpid:\t", 7) == 0 && last > line + 6) {
            inner = strtoll(last + 1, NULL, 10);
        }
    }
    if (status) {
        (void)fclose(status);
    }
    return inner;
}

/* Enters a namespace of the process, unless this process is in it already. */
static bool enter(long long pid, const char *kind, int type)
{
    char path[64];
    struct stat own, its;
    (void)snprintf(path, sizeof path, "/proc/%lld/ns/%s", pid, kind);
    muster_auto(close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &its) < 0) {
        return false;
    }
    (void)snprintf(path, sizeof path, "/proc/self/ns/%s", kind);
    return (stat(path, &own) == 0 && own.st_ino == its.st_ino) || setns(fd, type) == 0;
}

/* Enters the namespaces of the process. Returns only in a child, which runs in them; this process
 * exits with the child's status. */
static void enter_namespace(const struct spy *spy)
{
    int status = 0;
    bool entered = enter(spy->pid, "user", CLONE_NEWUSER) && enter(spy->pid, "pid", CLONE_NEWPID);
    pid_t child = entered ? fork() : -1;
    if (child > 0) {
        _exit(waitpid(child, &status, 0) == child && status == 0 ? 0 : 1);
    }
    if (child < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || unshare(CLONE_NEWNS) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0) {
        (void)dprintf(STDERR_FILENO, "Error: cannot enter the rank's PID namespace: %s\n",
                      strerror(errno));
        _exit(1);
    }
}

__attribute__((noreturn)) static void be_pyspy(const struct spy *spy, int out)
{
    char number[32];
    (void)snprintf(number, sizeof number, "%lld", spy->inner_pid ? spy->inner_pid : spy->pid);
    int nothing = open("/dev/null", O_RDONLY);
    (void)dup2(nothing, STDIN_FILENO);
    (void)dup2(out, STDOUT_FILENO);
    (void)dup2(out, STDERR_FILENO);
    if (spy->inner_pid) {
        enter_namespace(spy);
    }
    (void)execl(spy->program, spy->program, "dump", "--pid", number,
                spy->native ? "--native" : NULL, (char *)NULL);
    (void)dprintf(STDERR_FILENO, "Error: %s: %s\n", spy->program, strerror(errno));
    _exit(127);
}

/* Reads the output; false if that has taken too long. */
static bool read_output(int fd, struct buf *text)
{
    int64_t until_ms = clock_ms() + LIMIT_MS;
    for (;;) {
        int64_t left_ms = until_ms - clock_ms();
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        if (left_ms <= 0 || poll(&ready, 1, (int)left_ms) == 0) {
            return false;
        }
        char *room = buf_reserve(text, PIECE_BYTES);
        ssize_t n = room ? read(fd, room, PIECE_BYTES) : 0;
        if (n <= 0 && !(n < 0 && errno == EINTR)) {
            return true;
        }
        buf_grew(text, n > 0 ? (size_t)n : 0);
    }
}

/* Runs py-spy; true if it succeeds. Adds its output in either case. */
static bool dump(const struct spy *spy, struct buf *text)
{
    int ends[2], status = -1;
    if (pipe2(ends, O_CLOEXEC) < 0) {
        return false;
    }
    muster_auto(close) int out = ends[0];
    pid_t child = fork();
    if (child == 0) {
        be_pyspy(spy, ends[1]);
    }
    close(ends[1]);
    if (child < 0) {
        return false;
    }
    if (!read_output(out, text)) {
        (void)kill(child, SIGKILL);
        buf_clear(text);
        buf_format(text, "Error: no answer within %d s", LIMIT_MS / 1000);
    }
    return waitpid(child, &status, 0) == child && status == 0;
}

/* Adds py-spy's first "Error: …" and its cause: after them py-spy prints its own stack. */
static void put_failure(json_t *process, const char *text)
{
    char why[WHY_BYTES];
    const char *error = strstr(text, "Error:");
    const char *cause = error ? strstr(error, "Caused by:\n") : NULL;
    cause = cause ? cause + strlen("Caused by:\n") : "";
    cause += strspn(cause, " 0123456789:");
    (void)snprintf(why, sizeof why, "py-spy could not: %.*s%s%.*s",
                   error ? (int)strcspn(error + 7, "\n") : 0, error ? error + 7 : "",
                   *cause ? ": " : "", (int)strcspn(cause, "\n"), cause);
    json_object_set_new(process, "nativeWhy", json_string(why));
}

/* Adds native frames. If py-spy cannot get them (unwinding fails on some machines), adds Python's
 * frames, unless our own handler has reported those. */
static void add(const char *program, json_t *process)
{
    long long pid = (long long)doc_int(process, "pid", 0);
    struct spy spy = {program, pid, inner_pid(pid), true};
    struct buf text;
    buf_init(&text, TEXT_BYTES_MAX);
    bool done = dump(&spy, &text);
    if (!done) {
        put_failure(process, buf_str(&text));
    }
    if (!done && !json_object_get(process, "stacks")) {
        spy.native = false;
        buf_clear(&text);
        done = dump(&spy, &text);
    }
    if (done) {
        json_t *native = json_string(buf_str(&text));
        json_object_set_new(process, "native", native ? native : json_string("(not UTF-8)"));
    }
    buf_done(&text);
}

void py_spy_add(json_t *processes)
{
    muster_auto(free) char *program = find_program();
    size_t i;
    json_t *process;
    json_array_foreach (processes, i, process) {
        if (program && runs_python((long long)doc_int(process, "pid", 0))) {
            add(program, process);
        }
    }
}
