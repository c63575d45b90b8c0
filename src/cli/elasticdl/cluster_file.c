/* See cluster_file.h. */
#include "cli/elasticdl/cluster_file.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/file.h"
#include "cli/elasticdl/cluster_functions.h"
#include "cli/elasticdl/python.h"
#include "deploy/files.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT_S = 30, ANSWER_BYTES_MAX = 4 << 20, NOT_STARTED = 127 };

struct call {
    const char *python;
    const char *file;
    int question; /* both are files in memory, so nobody waits for a reader */
    int answer;
};

/* The child has a time limit of its own, which holds even when this program is killed. */
__attribute__((noreturn)) static void be_python(const struct call *call)
{
    const struct deploy_file *program = deploy_file_find("elasticdl/cluster_spec.py");
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)signal(SIGALRM, SIG_DFL);
    (void)alarm(LIMIT_S);
    if (program && dup2(call->question, STDIN_FILENO) >= 0 &&
        dup2(call->answer, STDOUT_FILENO) >= 0) {
        (void)execl(call->python, call->python, "-c", program->text, call->file, (char *)NULL);
    }
    _exit(NOT_STARTED);
}

static int run(const struct call *call, struct muster_err *err)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        be_python(call);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (child < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == NOT_STARTED)) {
        return muster_fail(err, MUSTER_EOS, "--cluster_spec: cannot start %s", call->python);
    }
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
        return muster_fail(err, MUSTER_ETIMEDOUT,
                           "--cluster_spec %s: it did not end within %d s; no job was made",
                           call->file, LIMIT_S);
    }
    return status == 0 ? 0
                       : muster_fail(err, MUSTER_EDATA,
                                     "--cluster_spec %s: it failed, as said above; no job was made",
                                     call->file);
}

static int read_answer(const struct call *call, json_t **ret, struct muster_err *err)
{
    struct stat st;
    struct muster_err why = MUSTER_ERR_INIT;
    muster_auto(free) char *text = NULL;
    bool fits = fstat(call->answer, &st) == 0 && st.st_size <= ANSWER_BYTES_MAX;
    size_t size = fits ? (size_t)st.st_size : 0;
    text = malloc(size + 1);
    if (!text) {
        return err_no_memory(err);
    }
    if (pread(call->answer, text, size, 0) != (ssize_t)size ||
        doc_parse(text, size, ret, &why) < 0) {
        return muster_fail(
            err, MUSTER_EDATA,
            "--cluster_spec %s: its python3 ended without an answer; no job was made", call->file);
    }
    return 0;
}

static int ask(const struct call *call, const json_t *question, json_t **ret,
               struct muster_err *err)
{
    muster_auto(free) char *text = doc_print(question);
    if (!text) {
        return err_no_memory(err);
    }
    if (call->question < 0 || call->answer < 0 ||
        file_write_bytes(call->question, text, strlen(text)) < 0 ||
        lseek(call->question, 0, SEEK_SET) < 0) {
        return muster_fail(err, MUSTER_EOS, "--cluster_spec: %s", strerror(errno));
    }
    int r = run(call, err);
    return r < 0 ? r : read_answer(call, ret, err);
}

static int check_file(const char *file, struct muster_err *err)
{
    muster_auto(close) int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return fd >= 0 ? 0 : file_fail(err, MUSTER_ENOENT, "read --cluster_spec", file);
}

int cluster_file_apply(const char *file, json_t *job, struct muster_err *err)
{
    muster_auto(doc) json_t *question = NULL;
    muster_auto(doc) json_t *answer = NULL;
    int r = check_file(file, err);
    if (r < 0) {
        return r;
    }
    muster_auto(free) char *python = python_with("kubernetes");
    if (!python) {
        return muster_fail(err, MUSTER_ENOENT,
                           "--cluster_spec: no python3 of PATH has the package kubernetes: pip "
                           "install kubernetes; --cluster_spec_json says what pods get without "
                           "Python");
    }
    muster_auto(close) int in = memfd_create("cluster_spec", MFD_CLOEXEC);
    muster_auto(close) int out = memfd_create("cluster_spec", MFD_CLOEXEC);
    r = cluster_functions_ask(job, &question, err);
    r = r < 0 ? r : ask(&(struct call){python, file, in, out}, question, &answer, err);
    return r < 0 ? r : cluster_functions_take(job, question, answer, err);
}
