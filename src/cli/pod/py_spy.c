/* See py_spy.h. */
#include "cli/pod/py_spy.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/time/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TEXT_BYTES_MAX = 256 << 10, PIECE_BYTES = 16 << 10, LIMIT_MS = 5000, WHY_BYTES = 512 };

/* In PATH; NULL: it is not there. The caller frees. */
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

/* py-spy takes long to find out that something is no Python. */
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
    bool native; /* frames of C and C++, too */
};

__attribute__((noreturn)) static void be_pyspy(const struct spy *spy, int out)
{
    char number[32];
    (void)snprintf(number, sizeof number, "%lld", spy->pid);
    int nothing = open("/dev/null", O_RDONLY);
    (void)dup2(nothing, STDIN_FILENO);
    (void)dup2(out, STDOUT_FILENO);
    (void)dup2(out, STDERR_FILENO);
    (void)execl(spy->program, spy->program, "dump", "--pid", number,
                spy->native ? "--native" : NULL, (char *)NULL);
    (void)dprintf(STDERR_FILENO, "Error: %s: %s\n", spy->program, strerror(errno));
    _exit(127);
}

/* False when it has taken too long. */
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

/* True when it could. Its output is added in either case. */
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

/* Its first "Error: …" and what caused that: it prints its own stack after them. */
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

/* Native frames may be beyond it (unwinding fails on some machines); then those of Python, where
 * our own handler has not told them. */
static void add(const char *program, json_t *process)
{
    struct spy spy = {program, (long long)doc_int(process, "pid", 0), true};
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
