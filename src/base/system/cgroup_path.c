/* See cgroup_path.h. */
#include "base/system/cgroup_path.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <stdbool.h>
#include <string.h>

/* The list of controllers of a line, and its path; both point into the text. */
struct tree {
    const char *names, *path;
    size_t names_count, path_count;
};

/* Reads the next valid line from *at on; returns false if there is none. */
static bool next_tree(const char **at, struct tree *ret)
{
    while (**at) {
        const char *line = *at;
        size_t count = strcspn(line, "\n");
        *at = line + count + (line[count] == '\n');
        const char *names = memchr(line, ':', count);
        names = names ? names + 1 : line + count;
        const char *path = memchr(names, ':', (size_t)(line + count - names));
        if (path) {
            *ret = (struct tree){.names = names,
                                 .names_count = (size_t)(path - names),
                                 .path = path + 1,
                                 .path_count = (size_t)(line + count - (path + 1))};
            return true;
        }
    }
    return false;
}

/* In version 2 the list of names is empty: it counts as one empty name. */
static bool has_name(const struct tree *tree, const char *controller)
{
    const char *end = tree->names + tree->names_count;
    for (const char *name = tree->names; name <= end;) {
        size_t count = strcspn(name, ",:");
        if (count == strlen(controller) && memcmp(name, controller, count) == 0) {
            return true;
        }
        name += count + 1;
    }
    return false;
}

static bool find_tree(const char *own, const char *controller, struct tree *ret)
{
    while (next_tree(&own, ret)) {
        if (has_name(ret, controller)) {
            return true;
        }
    }
    return false;
}

char *cgroup_own_path(const char *own, const char *controller)
{
    struct tree tree;
    return find_tree(own, controller, &tree) ? strndup(tree.path, tree.path_count) : NULL;
}

char *cgroup_v1_root(const char *root, const char *own, const char *controller)
{
    struct tree tree;
    if (!find_tree(own, controller, &tree)) {
        return NULL;
    }
    muster_auto(free) char *names = strndup(tree.names, tree.names_count);
    muster_auto(free) char *shared = names ? file_join(root, names) : NULL;
    char *folder = file_join(root, controller);
    if (folder && shared && !file_exists(folder) && file_exists(shared)) {
        free(folder);
        return muster_take(shared);
    }
    return folder;
}

const char *cgroup_v2_root(const char *root, char **ret_unified)
{
    muster_auto(free) char *procs = file_join(root, "cgroup.procs");
    *ret_unified = file_join(root, "unified");
    return (procs && file_exists(procs)) || !*ret_unified ? root : *ret_unified;
}
