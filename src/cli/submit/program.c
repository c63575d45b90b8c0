/* See program.h. */
#include "cli/submit/program.h"

#include "cli/command/torchrun.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COMMAND_BYTES = 512 };

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Whether the file is an ELF executable, or a script with its interpreter in the first line. */
static bool is_executable(const char *path)
{
    char start[4] = "";
    int fd = is_file(path) && access(path, X_OK) == 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) {
        return false;
    }
    ssize_t n = read(fd, start, sizeof start);
    close(fd);
    return n >= 2 && (memcmp(start, "#!", 2) == 0 || (n == 4 && memcmp(start,
                                                                       "\x7f"
                                                                       "ELF",
                                                                       4) == 0));
}

static bool is_program(const char *word)
{
    return torchrun_is_script(word) || is_executable(word) ||
           (torchrun_is_launcher(word) && !is_file(word));
}

static int explain(struct cli *cli, const char *ranks, size_t at)
{
    const char *const *words = cli->args.operands + at;
    char command[COMMAND_BYTES], script[COMMAND_BYTES / 2];
    bool skip = torchrun_is_launcher(words[0]) && words[1] && torchrun_is_script(words[1]);
    if (skip && strncmp(words[0], "python", strlen("python")) != 0) {
        torchrun_command(words[1], command, sizeof command); /* muster replaces the launcher */
    } else if (skip) {
        torchrun_quote(words[1], script, sizeof script);
        snprintf(command, sizeof command, "%.200s %s", words[0], script);
    } else {
        torchrun_command(words[0], command, sizeof command);
    }
    bool more = words[skip ? 2 : 1] || (skip && !words[1]);
    return muster_fail(&cli->err, MUSTER_EINVAL, "run: '%s' is a %s: muster run -n %s -- %s%s%s",
                       words[0], torchrun_is_script(words[0]) ? "script" : "program", ranks,
                       command, more ? " …" : "", strcmp(ranks, "N") == 0 ? " (on N ranks)" : "");
}

int program_check_files(struct cli *cli)
{
    for (size_t i = 0; i < cli->args.operand_count; i++) {
        if (is_program(cli->args.operands[i])) {
            return explain(cli, "N", i);
        }
    }
    return 0;
}

/* Whether execvp finds the file here: a word with a slash is a path, another word is searched only
 * on PATH. */
static bool can_start(const char *word)
{
    return strchr(word, '/') && access(word, X_OK) == 0;
}

int program_check_command(struct cli *cli)
{
    const struct args *args = &cli->args;
    const char *word = args->operands[0];
    const char *runtime = args_value(args, "runtime");
    bool elsewhere = args_value(args, "workdir") || (runtime && strcmp(runtime, "podman") == 0);
    if (!word || elsewhere) {
        return 0;
    }
    bool script = torchrun_is_script(word) && is_file(word) && !can_start(word);
    bool launcher = !args->separated && strcmp(word, "torchrun") == 0 && !is_file(word);
    return script || launcher ? explain(cli, args_value(args, "ranks"), 0) : 0;
}
