/* Decides which processes of a container are killed at once, and which live until the rest has
 * ended.
 *
 * Layer: services (reads /proc). Thread: the monitor's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Python's resource tracker, which unlinks what processes that died have left in /dev/shm, ends by
 * itself when the last of them has; so long does it live on at most. It may have only just been
 * started: a Python on a busy machine needs seconds to get to where it unlinks. */
enum { REMNANTS_TRACKER_MS = 10000 };

/* Whether a process with these words (/proc/PID/cmdline) is left alive: the words with which
 * Python's multiprocessing starts its tracker (python -c "from … import main; …"), or none at all,
 * since in the middle of execve(2) a process has no words yet. */
bool remnants_is_spared(const char *command, size_t used);

/* Kills every descendant of root but those that are spared; `main_pid` in any case, whatever its
 * words are. */
void remnants_kill(pid_t root, pid_t main_pid);
