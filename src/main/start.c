/* See start.h. */
#include "main/start.h"

#include "base/system/nofile_limit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <muster/err.h>

enum { STACK_KIB_MIN = 256 }; /* buffers of 64 KiB are on it; with 96 KiB controllers crashed */
enum { FILES_MIN = 64 }; /* with 24 a controller has none left for a rank, and runs wait for ever */

/* If descriptor 0, 1 or 2 is closed, the next socket or file would get its number, and output would
 * be written to it. They are opened in the wrong direction, so that reads or writes fail as on
 * closed ones. */
static void occupy_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0) {
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
        }
    }
}

/* A thread that runs out of stack ends the program without a message, while its clients wait for an
 * answer. */
static void need_stack(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < STACK_KIB_MIN * 1024) {
        fprintf(stderr,
                "muster: the stack may have %llu KiB here (ulimit -s), and %d are needed: "
                "ulimit -s 8192\n",
                (unsigned long long)limit.rlim_cur / 1024, STACK_KIB_MIN);
        exit(muster_code_exit(MUSTER_EOS));
    }
}

/* Called after the limit was raised as far as permitted. */
static void need_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < FILES_MIN) {
        fprintf(stderr,
                "muster: %llu files may be open here (ulimit -n), and %d are needed: type it in a "
                "shell with a higher limit (ulimit -Hn)\n",
                (unsigned long long)limit.rlim_cur, FILES_MIN);
        exit(muster_code_exit(MUSTER_EOS));
    }
}

void start_process(void)
{
    occupy_standard_descriptors();
    need_stack();
    (void)signal(SIGXFSZ, SIG_IGN); /* a write past `ulimit -f` fails and is reported */
    nofile_limit_raise();
    need_files();
}

bool start_asks_for_help(int argc, char **argv, int first)
{
    for (int i = first; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return true;
        }
    }
    return false;
}
