/* Where a process's control groups are mounted, by the text of /proc/self/cgroup.
 *
 * Layer: services; for cgroup.c, which makes groups, and cgroup_read.c, which reads them.
 */
#pragma once

/* The path of `controller` ("" is version 2) in the text of /proc/self/cgroup: lines
 * "ID:CONTROLLERS:PATH". The caller frees. */
char *cgroup_own_path(const char *own, const char *controller);

/* Hybrid machines mount version 2 at ROOT/unified; the caller frees *ret_unified. */
const char *cgroup_v2_root(const char *root, char **ret_unified);
