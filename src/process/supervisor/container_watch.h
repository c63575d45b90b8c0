/* Measures the peak memory of a podman container, and whether the kernel killed a process in it
 * for want of memory. podman removes the container's control group soon after its end, so it is
 * read while it runs, and once more at the moment when its first process ends.
 *
 * Layer: services; the supervisor's. Thread: the loop's. Ownership: start/stop.
 */
#pragma once

#include "process/machine/cgroup.h"

#include <sys/types.h>
#include <uv.h>

struct container_watch;

/* `monitor`: the attempt's. Returns NULL when out of memory. */
struct container_watch *container_watch_start(uv_loop_t *loop, pid_t monitor);
/* `watch` may be NULL. */
void container_watch_stop(struct container_watch *watch);

/* Returns what was measured until now; false: the container was never seen. */
bool container_watch_read(const struct container_watch *watch, struct cgroup_memory *ret);
