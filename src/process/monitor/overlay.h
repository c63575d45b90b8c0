/* A tmpfs over a folder that shows what the folder had. Names can be made there without a change
 * to the machine. Over "/" it is a new root.
 *
 * Layer: services. Thread: a single-threaded process in a mount namespace of its own.
 */
#pragma once

#include "process/wire/spec.h"

#include <muster/err.h>
#include <stdbool.h>
#include <sys/types.h>

/* One for each mount, and one for the root. */
enum { COVERS_MAX = PROCESS_MOUNTS_MAX + PROCESS_OWN_MOUNTS_MAX + 1 };

struct covers {
    dev_t devices[COVERS_MAX];
    size_t count;
};

/* Later mounts of this process are not visible outside it. `staging` is an empty folder. */
int overlay_detach(const char *staging, struct muster_err *err);

/* MUSTER_ETOOBIG: the folder has too many entries. */
int overlay_folder(struct covers *covers, const char *folder, struct muster_err *err);
int overlay_root(struct covers *covers, const char *staging, struct muster_err *err);

/* Whether the folder is in a tmpfs of `covers`. */
bool covers_hold(const struct covers *covers, const char *folder);
