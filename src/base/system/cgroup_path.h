/* Where a process's control groups are mounted, by the text of its /proc/PID/cgroup, of version 1,
 * version 2, or both at once ("hybrid"). In version 1 several controllers may share one tree.
 *
 * Layer: base (not for pure code). Thread-safe.
 */
#pragma once

#define CGROUP_ROOT "/sys/fs/cgroup"

/* The path of `controller` ("" is version 2) in that text: lines "ID:CONTROLLERS:PATH", a comma
 * between two controllers. NULL: it is of no tree. The caller frees. */
char *cgroup_own_path(const char *own, const char *controller);

/* The folder of the tree that has `controller` in version 1, below which that path is: NULL as
 * above. One that shares its tree has a link of its own name beside it, as systemd makes it, or
 * else lies under all names ("cpu,cpuacct"). The caller frees. */
char *cgroup_v1_root(const char *root, const char *own, const char *controller);

/* The folder of the tree of version 2: hybrid machines have it at ROOT/unified. The caller frees
 * *ret_unified. */
const char *cgroup_v2_root(const char *root, char **ret_unified);
