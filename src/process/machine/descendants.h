/* Finds all processes below one, also those with sessions of their own; together they are "the
 * whole container".
 *
 * A process whose parent died is found only while it hangs below `root`: root must be a child
 * subreaper (prctl(2)), or the init of a PID namespace.
 *
 * Layer: services (reads /proc). Thread: any.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* /proc shows this process under its own number: false in a new PID namespace with the old /proc.
 */
bool descendants_visible(void);

/* One living process (base/system/process_stat.h). */
struct descendant {
    pid_t pid;
    pid_t parent;
    char state;           /* R, S, D, T, t … */
    uint64_t cpu_ticks;   /* of its own and of the children it has waited for */
    uint64_t start_ticks; /* since the machine started */
};

/* Everything below root, without root; a parent stands before its children. The caller frees *ret,
 * which is NULL when there is nothing (or no memory). One look at each process of the machine. */
size_t descendants_list(pid_t root, struct descendant **ret);

/* Reads up to `room` bytes of /proc/PID/NAME, without a NUL; 0 when it is gone. */
size_t descendants_read(pid_t pid, const char *name, char *into, size_t room);

/* Sends the signal to this process and to no other that has its number by now (pidfd_open(2); where
 * the kernel has none, by number right after the look). False: it is gone. */
bool descendants_signal(const struct descendant *process, int number);

/* Sends the signal to every descendant of root, not to root. Returns how many there were. */
int descendants_kill(pid_t root, int number);

/* Sends SIGKILL to every process whose environment holds `mark` as a whole entry ("NAME=value"),
 * or, when it ends with '/', as the beginning of one. Returns how many there were; a process that
 * is forked meanwhile is found by looking again until there is none. Processes that cleared their
 * environment are missed. */
int descendants_sweep_once(const char *mark);
/* Looks until none is found, and gives up after some seconds: not for a loop. */
void descendants_sweep(const char *mark);
