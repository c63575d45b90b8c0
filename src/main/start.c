/* See start.h. */
#include "main/start.h"

#include "base/system/nofile_limit.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* Where 0, 1 or 2 is closed, the next socket or file would take its number, and what is said to
 * standard output would go there. Opened the wrong way round they refuse as closed ones do. */
static void occupy_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0) {
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
        }
    }
}

void start_process(void)
{
    occupy_standard_descriptors();
    (void)signal(SIGXFSZ, SIG_IGN); /* `ulimit -f`: the write fails, and that is said */
    nofile_limit_raise();
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
