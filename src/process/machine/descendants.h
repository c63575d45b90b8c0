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

/* Whether /proc shows this process under its own number: it does not in a new PID namespace with
 * the old /proc. */
bool descendants_visible(void);

/* A living process (base/system/process_stat.h). */
struct descendant {
    pid_t pid;
    pid_t parent;
    char state;           /* R, S, D, T, t … */
    uint64_t cpu_ticks;   /* of the process and of the children that it has waited for */
    uint64_t start_ticks; /* since the machine started */
};

/* Lists every process below root, without root; a parent is before its children. The caller frees
 * *ret, which is NULL when there are none (or no memory). Reads each process of the machine
 * once. */
size_t descendants_list(pid_t root, struct descendant **ret);

/* Reads up to `room` bytes of /proc/PID/NAME, without a NUL; returns 0 when the process is gone. */
size_t descendants_read(pid_t pid, const char *name, char *into, size_t room);

/* Sends the signal to this process, and not to another that has got its number since
 * (pidfd_open(2); if the kernel has none, by number right after a comparison). Returns false when
 * it is gone. */
bool descendants_signal(const struct descendant *process, int number);

/* Sends the signal to every descendant of root, not to root. Returns how many there were. */
int descendants_kill(pid_t root, int number);

/* Sends SIGKILL to every process whose environment holds `mark` as a whole entry ("NAME=value"),
 * or, if it ends with '/', as the beginning of an entry. Returns how many there were; call it until
 * it returns 0, to find processes that were forked meanwhile. Processes that cleared their
 * environment are missed. */
int descendants_sweep_once(const char *mark);
/* Repeats descendants_sweep_once until it finds none, and gives up after some seconds: do not call
 * it from a loop. */
void descendants_sweep(const char *mark);
