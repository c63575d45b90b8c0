/* muster: one binary. What users type is cli_main; perf measures collectives, operator is the
 * controller on a Kubernetes cluster; the hidden verbs are the background controller, the
 * supervisor of each job's processes and the parent of a coordinator. */
#include "base/nofile_limit.h"
#include "cli/dispatch.h"
#include "daemon/daemon.h"
#include "main/keep.h"
#include "operator/operator.h"
#include "perf/perf.h"
#include "process/supervisor/supervisor.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
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

/* Help on every verb is the command line's. */
static bool asks_for_help(int argc, char **argv)
{
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return true;
        }
    }
    return false;
}

static const struct {
    const char *verb;
    int (*run)(int argc, char **argv);
} programs[] = {{"daemon", daemon_main},
                {"keep", keep_main},
                {"operator", operator_main},
                {"perf", perf_main},
                {"supervisor", supervisor_main}};

int main(int argc, char **argv)
{
    occupy_standard_descriptors();
    (void)signal(SIGXFSZ, SIG_IGN); /* `ulimit -f`: the write fails, and that is said */
    nofile_limit_raise();
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    bool elasticdl = argc > 0 && strcmp(slash ? slash + 1 : argv[0], "elasticdl") == 0;
    for (size_t i = 0; !elasticdl && i < sizeof programs / sizeof programs[0]; i++) {
        if (argc > 1 && strcmp(argv[1], programs[i].verb) == 0 && !asks_for_help(argc, argv)) {
            return programs[i].run(argc - 1, argv + 1);
        }
    }
    return cli_main(argc, argv);
}
