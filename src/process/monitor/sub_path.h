/* A volume's subPath, opened so that it stays inside its volume.
 *
 * The volume is written by containers, which may have put a symlink anywhere in it: each is
 * resolved as if the volume were the root (openat2(2), RESOLVE_IN_ROOT), while it is walked and
 * never before.
 *
 * Layer: services. Thread: any.
 */
#pragma once

#include "process/wire/spec.h"

#include <muster/err.h>

/* *ret_fd: an O_PATH descriptor of the mount's source, which the caller closes; folders that are
 * missing below the volume are made. MUSTER_ENOENT, MUSTER_ECREATE. */
int sub_path_open(const struct process_mount *mount, int *ret_fd, struct muster_err *err);
