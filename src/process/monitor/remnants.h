/* What is killed of a container at once, and what lives on until the rest has ended.
 *
 * Layer: services (reads /proc). Thread: the monitor's.
 */
#pragma once

#include <sys/types.h>

/* Python's resource tracker, which unlinks what processes that died have left in /dev/shm, ends by
 * itself when the last of them has; so long does it live on at most. */
enum { REMNANTS_TRACKER_MS = 1000 };

/* Kills every descendant of root but resource trackers; `main_pid` in any case, whatever its words
 * are. */
void remnants_kill(pid_t root, pid_t main_pid);
