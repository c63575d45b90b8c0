/* See remnants.h. */
#include "process/monitor/remnants.h"

#include "process/machine/descendants.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { COMMAND_BYTES = 1024 };

/* By the words with which Python's multiprocessing starts it: python -c "from … import main; …". */
static bool is_tracker(pid_t pid)
{
    static const char words[] = "from multiprocessing.resource_tracker import main";
    char command[COMMAND_BYTES];
    size_t used = descendants_read(pid, "cmdline", command, sizeof command);
    return memmem(command, used, words, sizeof words - 1) != NULL;
}

void remnants_kill(pid_t root, pid_t main_pid)
{
    struct descendant *list;
    size_t count = descendants_list(root, &list);
    for (size_t i = 0; i < count; i++) {
        if (list[i].pid == main_pid || !is_tracker(list[i].pid)) {
            (void)descendants_signal(&list[i], SIGKILL);
        }
    }
    free(list);
}
