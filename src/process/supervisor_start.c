/* See supervisor_start.h. A supervisor goes into the background at once: the process that is
 * started here soon exits. */
#include "process/supervisor_start.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log_file.h"
#include "base/system/error_text.h"
#include "base/system/nofile_limit.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { SHELL_WORDS_MAX = 16 };

static void on_closed(uv_handle_t *handle)
{
    free(handle);
}

static void on_exited(uv_process_t *process, int64_t status, int signal)
{
    (void)status;
    (void)signal;
    uv_close((uv_handle_t *)process, on_closed);
}

/* Fills in the words of the supervisor's command line, NULL at the end. */
static void supervisor_words(const struct process_job_options *o, const char *open_files,
                             const char *words[SHELL_WORDS_MAX])
{
    size_t n = 0;
    words[n++] = "muster";
    words[n++] = "supervisor";
    words[n++] = "--dir";
    words[n++] = o->folder;
    words[n++] = "--connected";
    if (o->private_network) {
        words[n++] = "--private-network";
    }
    const struct {
        const char *option;
        const char *value;
    } more[] = {{"--runner", o->runner},
                {"--cgroup-root", o->cgroup_root},
                {"--isolation", o->isolation},
                {"--open-files", open_files}};
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
        if (more[i].value) {
            words[n++] = more[i].option;
            words[n++] = more[i].value;
        }
    }
    assert(n < SHELL_WORDS_MAX);
    words[n] = NULL;
}

static int spawn(uv_loop_t *loop, const struct process_job_options *options, int connection_fd,
                 struct muster_err *err)
{
    const char *words[SHELL_WORDS_MAX];
    /* The supervisor writes to this file only when it starts or fails, so its length is limited
     * here. */
    muster_auto(close) int log_fd =
        log_file_open(options->folder, "supervisor.log", SUPERVISOR_LOG_BYTES_MAX);
    uv_process_t *process = calloc(1, sizeof *process);
    if (!process) {
        return err_no_memory(err);
    }
    char limit[24];
    (void)snprintf(limit, sizeof limit, "%lu", nofile_limit_of_user());
    supervisor_words(options, nofile_limit_of_user() ? limit : NULL, words);
    const uv_stdio_container_t log = {.flags = log_fd >= 0 ? UV_INHERIT_FD : UV_IGNORE,
                                      .data.fd = log_fd};
    uv_stdio_container_t streams[4] = {
        {.flags = UV_IGNORE}, log, log, {.flags = UV_INHERIT_FD, .data.fd = connection_fd}};
    const uv_process_options_t how = {.exit_cb = on_exited,
                                      .file = options->program,
                                      .args = (char **)words,
                                      .cwd = "/",
                                      .flags = UV_PROCESS_DETACHED,
                                      .stdio_count = 4,
                                      .stdio = streams};
    int r = uv_spawn(loop, process, &how);
    if (r < 0) {
        uv_close((uv_handle_t *)process, on_closed);
        return muster_fail(err, MUSTER_EOS, "cannot start %s supervisor: %s", options->program,
                           error_text_start(-r));
    }
    return 0;
}

int supervisor_start(uv_loop_t *loop, const struct process_job_options *options, int *ret_fd,
                     struct muster_err *err)
{
    int ends[2];
    assert(options->folder && options->program);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        return muster_fail(err, MUSTER_EOS, "cannot make a socket pair: %s", error_text(errno));
    }
    int r = spawn(loop, options, ends[1], err);
    close(ends[1]);
    if (r < 0) {
        close(ends[0]);
        return r;
    }
    *ret_fd = ends[0];
    return 0;
}
