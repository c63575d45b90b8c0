/* See remnants.h. */
#include "process/monitor/remnants.h"

#include "process/machine/descendants.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { COMMAND_BYTES = 1024 };

bool remnants_is_spared(const char *command, size_t used)
{
    static const char words[] = "from multiprocessing.resource_tracker import main";
    return used == 0 || memmem(command, used, words, sizeof words - 1) != NULL;
}

static bool is_spared(pid_t pid)
{
    char command[COMMAND_BYTES];
    return remnants_is_spared(command, descendants_read(pid, "cmdline", command, sizeof command));
}

void remnants_kill(pid_t root, pid_t main_pid)
{
    struct descendant *list;
    size_t count = descendants_list(root, &list);
    for (size_t i = 0; i < count; i++) {
        if (list[i].pid == main_pid || !is_spared(list[i].pid)) {
            (void)descendants_signal(&list[i], SIGKILL);
        }
    }
    free(list);
}
