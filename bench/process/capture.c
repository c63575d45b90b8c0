/* What it costs to capture a container's output: the writer's rate and processor time, and the
 * supervisor's processor time, beside the same writer into a file and through `cat` into a file.
 *
 *     capture MEGABYTES RATE     RATE in MB/s, 0: as fast as it goes; prints one JSON line
 */
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/file.h"
#include "process/process.h"
#include "process/supervisor/supervisor.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

enum { BLOCK_BYTES = 64 << 10 };

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Writes lines of 100 bytes in blocks, as stdio passes them on. */
static int be_writer(int64_t megabytes, double rate)
{
    static char block[BLOCK_BYTES];
    memset(block, 'x', sizeof block);
    for (size_t i = 99; i < sizeof block; i += 100) {
        block[i] = '\n';
    }
    double start = now_s();
    int64_t blocks = megabytes * 1000000 / BLOCK_BYTES;
    for (int64_t i = 0; i < blocks; i++) {
        for (size_t done = 0; done < sizeof block;) {
            ssize_t n = write(STDOUT_FILENO, block + done, sizeof block - done);
            if (n < 0) {
                return 74;
            }
            done += (size_t)n;
        }
        double due = rate > 0 ? (double)(i + 1) * BLOCK_BYTES / 1e6 / rate : 0;
        double ahead = start + due - now_s();
        if (ahead > 0.001) {
            (void)poll(NULL, 0, (int)(ahead * 1000));
        }
    }
    return 0;
}

/* ---- Without muster ---- */

static double seconds_by_shell(const char *self, const char *megabytes, const char *rate,
                               const char *sink, double *ret_cpu_s)
{
    struct rusage before, after;
    muster_auto(free) char *command = NULL;
    if (asprintf(&command, "%s write %s %s %s", self, megabytes, rate, sink) < 0) {
        abort();
    }
    getrusage(RUSAGE_CHILDREN, &before);
    double start = now_s();
    pid_t pid = fork();
    if (pid == 0) {
        (void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    (void)waitpid(pid, NULL, 0);
    double took = now_s() - start;
    getrusage(RUSAGE_CHILDREN, &after);
    *ret_cpu_s = (double)(after.ru_utime.tv_sec + after.ru_stime.tv_sec - before.ru_utime.tv_sec -
                          before.ru_stime.tv_sec) +
                 (double)(after.ru_utime.tv_usec + after.ru_stime.tv_usec -
                          before.ru_utime.tv_usec - before.ru_stime.tv_usec) /
                     1e6;
    return took;
}

/* ---- With muster ---- */

struct capture {
    struct process_job *job;
    const char *folder;
    double took_s;
    double cpu_s;
    long resident_kib;
};

/* Reads the processor time of the supervisor while it lives. */
static void read_cost(struct capture *c)
{
    int pid = 0;
    char path[256];
    long user = 0, system_ticks = 0;
    muster_auto(free) char *record = NULL;
    muster_auto(free) char *stat = NULL;
    muster_auto(free) char *status = NULL;
    (void)snprintf(path, sizeof path, "%s/containers/p/c/0/started.json", c->folder);
    const char *at = file_read(path, 65536, &record, NULL, NULL) == 0
                         ? strstr(record, "\"supervisor\":\"")
                         : NULL;
    if (!at || sscanf(at, "\"supervisor\":\"%d-", &pid) != 1) {
        return;
    }
    (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (file_read(path, 4096, &stat, NULL, NULL) == 0) {
        (void)sscanf(strrchr(stat, ')'), ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld",
                     &user, &system_ticks);
    }
    (void)snprintf(path, sizeof path, "/proc/%d/smaps_rollup", pid);
    if (file_read(path, 65536, &status, NULL, NULL) == 0 && strstr(status, "Pss:")) {
        (void)sscanf(strstr(status, "Pss:"), "Pss: %ld", &c->resident_kib);
    }
    c->cpu_s = (double)(user + system_ticks) / (double)sysconf(_SC_CLK_TCK);
}

static void on_exited(void *data, const char *id, const struct process_exit *exit)
{
    struct capture *c = data;
    (void)id;
    c->took_s = (double)(exit->at_unix_ms - exit->started_unix_ms) / 1000;
    read_cost(c);
    (void)process_job_end(c->job, 0, NULL);
}

static void on_ended(void *data)
{
    struct capture *c = data;
    process_job_close(c->job);
}

static void on_lost(void *data, const char *why)
{
    (void)fprintf(stderr, "capture: %s\n", why);
    on_ended(data);
}

static int capture(const char *self, const char *megabytes, const char *rate, struct capture *c)
{
    static const struct process_events events = {
        .exited = on_exited, .lost = on_lost, .ended = on_ended};
    struct process_job_options options = {.folder = c->folder};
    struct muster_err err = MUSTER_ERR_INIT;
    uv_loop_t loop;
    (void)uv_loop_init(&loop);
    muster_auto(doc) json_t *spec = json_pack("{s:[s, s, s, s], s:{}, s:s}", "argv", self, "write",
                                              megabytes, rate, "env", "cwd", "/");
    if (process_job_open(&loop, &options, &events, c, &c->job, &err) < 0 ||
        process_job_start(c->job, "p/c/0", spec, &err) < 0) {
        (void)fprintf(stderr, "capture: %s\n", err.text);
        return muster_code_exit(err.code);
    }
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&loop);
    return 0;
}

static int measure(const char *self, const char *megabytes, const char *rate)
{
    char folder[] = "/tmp/muster-capture-XXXXXX", sink[64];
    double file_cpu_s, pipe_cpu_s;
    struct capture c = {.folder = folder};
    if (!mkdtemp(folder)) {
        return 73;
    }
    (void)snprintf(sink, sizeof sink, "> %s/out", folder);
    double file_s = seconds_by_shell(self, megabytes, rate, sink, &file_cpu_s);
    (void)snprintf(sink, sizeof sink, "| cat > %s/out", folder);
    double pipe_s = seconds_by_shell(self, megabytes, rate, sink, &pipe_cpu_s);
    int r = capture(self, megabytes, rate, &c);
    (void)file_remove(folder, NULL);
    (void)printf("{\"megabytes\": %s, \"rate\": %s, \"file_s\": %.3f, \"file_cpu_s\": %.3f, "
                 "\"cat_s\": %.3f, \"cat_cpu_s\": %.3f, \"muster_s\": %.3f, "
                 "\"supervisor_cpu_s\": %.3f, \"supervisor_pss_kib\": %ld}\n",
                 megabytes, rate, file_s, file_cpu_s, pipe_s, pipe_cpu_s, c.took_s, c.cpu_s,
                 c.resident_kib);
    return r;
}

int main(int argc, char **argv)
{
    char self[4096];
    if (argc > 1 && strcmp(argv[1], "supervisor") == 0) {
        return supervisor_main(argc - 1, argv + 1);
    }
    if (argc == 4 && strcmp(argv[1], "write") == 0) {
        return be_writer(strtoll(argv[2], NULL, 10), strtod(argv[3], NULL));
    }
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (argc != 3 || length < 0) {
        (void)fprintf(stderr, "capture: usage: capture MEGABYTES RATE\n");
        return 64;
    }
    self[length] = '\0';
    (void)signal(SIGPIPE, SIG_IGN);
    return measure(self, argv[1], argv[2]);
}
