/* muster: one binary. What users type is cli_main; perf measures collectives, operator is the
 * controller on a Kubernetes cluster; the hidden verbs are the background controller, the
 * supervisor of each job's processes and the parent of a coordinator. */
#include "cli/dispatch.h"
#include "daemon/daemon.h"
#include "main/keep.h"
#include "main/start.h"
#include "operator/operator.h"
#include "perf/perf.h"
#include "process/supervisor/supervisor.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

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
    start_process();
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    bool elasticdl = argc > 0 && strcmp(slash ? slash + 1 : argv[0], "elasticdl") == 0;
    bool helps = start_asks_for_help(argc, argv, 2); /* the command line prints the help */
    for (size_t i = 0; !elasticdl && !helps && i < sizeof programs / sizeof programs[0]; i++) {
        if (argc > 1 && strcmp(argv[1], programs[i].verb) == 0) {
            return programs[i].run(argc - 1, argv + 1);
        }
    }
    return cli_main(argc, argv);
}
