/* What is left of a container when its main process has ended, and how it goes.
 *
 * Layer: services (reads /proc). Thread: the monitor's.
 */
#pragma once

#include <sys/types.h>

/* Python's resource tracker, which unlinks what processes that died have left in /dev/shm, ends by
 * itself when the last of them has; so long does it live on at most. */
enum { REMNANTS_TRACKER_MS = 1000 };

/* Kills every descendant of root but resource trackers. */
void remnants_kill(pid_t root);
