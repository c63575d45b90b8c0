/* The file system that a container sees: the machine's, with its volumes at their mountPaths, in a
 * mount namespace of its own. The machine is not touched.
 *
 * A mountPath that does not exist is made in a tmpfs over its nearest existing folder, in which
 * everything that was there is bound again (for one directly under /, over a new root). What the
 * container then creates beside it is gone with the container.
 *
 * Layer: services. Thread: a single-threaded process of its own, once.
 */
#pragma once

#include "process/wire/spec.h"

#include <muster/err.h>
#include <stdbool.h>

struct mounts_plan {
    const struct process_mount *mounts;
    size_t count;
    const char *staging; /* an empty folder, where a new root is built */
    bool new_proc;       /* the process is in a new PID namespace */
};

/* Enters a new mount namespace and mounts the volumes. MUSTER_ENOENT, MUSTER_EOS, MUSTER_ETOOBIG:
 * the process must end. *ret_proc: /proc shows the PID namespace. */
int mounts_enter(const struct mounts_plan *plan, bool *ret_proc, struct muster_err *err);

/* For machines without mount namespaces: succeeds if every volume is already at its mountPath. */
int mounts_check_plain(const struct mounts_plan *plan, struct muster_err *err);
