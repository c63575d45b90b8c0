/* Decides which processes of a container are killed at once, and which live until the rest has
 * ended.
 *
 * Layer: services (reads /proc). Thread: the monitor's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The time that Python's resource tracker has at most. It unlinks what dead processes have left in
 * /dev/shm, and ends by itself when the last of them has ended. It may only just have been started:
 * on a busy machine a Python needs seconds until it can unlink. */
enum { REMNANTS_TRACKER_MS = 10000 };

/* Whether a process with these words (/proc/PID/cmdline) is left alive: the words with which
 * Python's multiprocessing starts its tracker (python -c "from … import main; …"), or no words at
 * all, since a process in the middle of execve(2) has none yet. */
bool remnants_is_spared(const char *command, size_t used);

/* Kills every descendant of root except the spared ones; `main_pid` is killed whatever its words
 * are. */
void remnants_kill(pid_t root, pid_t main_pid);
