/* muster: one binary. What users type is cli_main; perf measures collectives; the hidden verbs are
 * the background controller and the supervisor of each job's processes. */
#include "cli/cli.h"
#include "daemon/daemon.h"
#include "perf/perf.h"
#include "process/supervisor.h"

#include <stddef.h>
#include <string.h>

static const struct {
    const char *verb;
    int (*run)(int argc, char **argv);
} programs[] = {{"daemon", daemon_main}, {"perf", perf_main}, {"supervisor", supervisor_main}};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        if (argc > 1 && strcmp(argv[1], programs[i].verb) == 0) {
            return programs[i].run(argc - 1, argv + 1);
        }
    }
    return cli_main(argc, argv);
}
