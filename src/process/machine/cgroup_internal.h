/* What the files of control groups share: cgroup.c makes groups, cgroup_read.c reads them.
 *
 * Layer: services; private to them.
 */
#pragma once

#include "process/machine/cgroup.h"

/* The path of `controller` ("" is version 2) in the text of /proc/self/cgroup: lines
 * "ID:CONTROLLERS:PATH". The caller frees. */
char *cgroup_own_path(const char *own, const char *controller);

/* Hybrid machines mount version 2 at ROOT/unified; the caller frees *ret_unified. */
const char *cgroup_v2_root(const char *root, char **ret_unified);
