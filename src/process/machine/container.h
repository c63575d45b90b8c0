/* The container that an engine runs below a process of ours: podman starts a conmon, which leaves
 * podman and so comes below the nearest subreaper, the attempt's monitor; its child in a PID
 * namespace of its own is the container's first process.
 *
 * Layer: services (reads /proc). Thread: any.
 */
#pragma once

#include "process/machine/descendants.h"

/* Returns the container's first process. `list` holds all processes below `root`, parents before
 * children (descendants_list). 0: the container does not run (yet). */
pid_t container_find(const struct descendant *list, size_t count, pid_t root);

/* Moves the container's processes, `first` and all below it, to the front; returns how many there
 * are. */
size_t container_keep(struct descendant *list, size_t count, pid_t first);
