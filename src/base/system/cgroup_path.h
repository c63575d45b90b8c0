/* Where a process's control groups are mounted, by the text of its /proc/PID/cgroup, of version 1,
 * version 2, or both at once ("hybrid"). In version 1 several controllers may share one tree.
 *
 * Layer: base (not for pure code). Thread-safe.
 */
#pragma once

#define CGROUP_ROOT "/sys/fs/cgroup"

/* Returns the path of `controller` ("" is version 2) in the text `own`, which has lines
 * "ID:CONTROLLERS:PATH" with a comma between two controllers. NULL if no line has it. The caller
 * frees. */
char *cgroup_own_path(const char *own, const char *controller);

/* Returns the folder of the version 1 tree that has `controller`; its path is below this folder.
 * NULL as above. A controller that shares its tree has a link of its own name beside the tree, as
 * systemd makes it; otherwise the tree has all the names ("cpu,cpuacct"). The caller frees. */
char *cgroup_v1_root(const char *root, const char *own, const char *controller);

/* Returns the folder of the version 2 tree: hybrid machines have it at ROOT/unified. The caller
 * frees *ret_unified. */
const char *cgroup_v2_root(const char *root, char **ret_unified);
