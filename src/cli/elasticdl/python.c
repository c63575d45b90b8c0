/* See python.h. */
#include "cli/elasticdl/python.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"
#include "base/home.h"
#include "cli/submit/environment.h"
#include "core/hash.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CANDIDATES_MAX = 16, ANSWER_S = 30, SCRIPT_BYTES_MAX = 16384 };

typedef bool fits_fn(const char *path, const char *module);

static bool is_program(const char *path, const char *module)
{
    (void)module;
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* Whether this python has the module. Nothing is imported, because that takes seconds, and the
 * current folder is not searched. A python that does not answer has no module. */
static bool has_module(const char *path, const char *module)
{
    static const char question[] =
        "import sys; sys.path[:] = filter(None, sys.path); import importlib.util; "
        "sys.exit(importlib.util.find_spec(sys.argv[1]) is None)";
    if (!is_program(path, NULL)) {
        return false;
    }
    pid_t child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_RDWR);
        for (int fd = 0; fd <= 2 && null >= 0; fd++) {
            (void)dup2(null, fd);
        }
        alarm(ANSWER_S);
        execl(path, path, "-c", question, module, NULL);
        _exit(127);
    }
    int status = -1;
    while (child > 0 && waitpid(child, &status, 0) < 0) {
    }
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Finds the first program of that name in the folders of PATH that fits; the caller frees it. */
static char *find(const char *name, fits_fn *fits, const char *module)
{
    const char *path = getenv("PATH");
    size_t tried = 0;
    for (const char *at = path ? path : ""; *at && tried < CANDIDATES_MAX;) {
        size_t length = strcspn(at, ":");
        muster_auto(free) char *folder = strndup(at, length);
        muster_auto(free) char *program = folder && *folder == '/' ? file_join(folder, name) : NULL;
        tried += program && is_program(program, NULL);
        if (program && fits(program, module)) {
            return muster_take(program);
        }
        at += length + (at[length] == ':');
    }
    return NULL;
}

char *python_with(const char *module)
{
    return find("python3", has_module, module);
}

/* Makes a script that calls the python. With a symbolic link, python would look for its packages in
 * another folder, and not find those of a virtual environment. */
static char *script_of(const char *python)
{
    struct buf text;
    buf_init(&text, SCRIPT_BYTES_MAX);
    buf_text(&text, "#!/bin/sh\nexec '");
    for (const char *c = python; *c; c++) {
        buf_text(&text, *c == '\'' ? "'\\'" : "");
        buf_add(&text, c, 1);
    }
    buf_text(&text, "' \"$@\"\n");
    char *script = buf_failed(&text) ? NULL : strdup(buf_str(&text));
    buf_done(&text);
    return script;
}

/* Writes the script. Each interpreter has its own folder, so that a running job keeps its script.
 */
static int write_script(const struct home *home, const char *python, char **ret_folder,
                        struct muster_err *err)
{
    muster_auto(free) char *all = home_file(home, "python");
    muster_auto(free) char *script = script_of(python);
    muster_auto(free) char *folder = NULL;
    if (!all || !script ||
        asprintf(&folder, "%s/%016llx", all, (unsigned long long)hash_text(HASH_START, python)) <
            0) {
        return err_no_memory(err);
    }
    muster_auto(free) char *path = file_join(folder, "python");
    int r = path ? file_mkdir(all, 0700, err) : err_no_memory(err);
    r = r < 0 ? r : file_mkdir(folder, 0700, err);
    r = r < 0 ? r : file_put(path, script, strlen(script), 0700, err);
    *ret_folder = r < 0 ? NULL : muster_take(folder);
    return r;
}

int python_give(struct cli *cli)
{
    muster_auto(free) char *there = find("python", is_program, NULL);
    muster_auto(free) char *best = there ? NULL : python_with("torch");
    muster_auto(free) char *python =
        there || best ? muster_take(best) : find("python3", is_program, NULL);
    muster_auto(free) char *folder = NULL;
    muster_auto(free) char *path = NULL;
    struct home home = {0};
    if (there || !python) {
        return 0;
    }
    int r = home_open(&home, &cli->err);
    r = r < 0 ? r : write_script(&home, python, &folder, &cli->err);
    home_done(&home);
    if (r == 0 && asprintf(&path, "%s:%s", getenv("PATH"), folder) < 0) {
        path = NULL;
        r = err_no_memory(&cli->err);
    }
    return r < 0 ? r : environment_give(cli, "", "PATH", path);
}
