/* See cgroup_path.h. */
#include "process/machine/cgroup_path.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <string.h>

char *cgroup_own_path(const char *own, const char *controller)
{
    for (const char *line = own; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *list = strchr(line, ':');
        const char *path = list ? strchr(list + 1, ':') : NULL;
        size_t length = strlen(controller);
        if (path && (size_t)(path - list - 1) == length &&
            memcmp(list + 1, controller, length) == 0) {
            return strndup(path + 1, strcspn(path + 1, "\n"));
        }
    }
    return NULL;
}

const char *cgroup_v2_root(const char *root, char **ret_unified)
{
    muster_auto(free) char *procs = file_join(root, "cgroup.procs");
    *ret_unified = file_join(root, "unified");
    return (procs && file_exists(procs)) || !*ret_unified ? root : *ret_unified;
}
