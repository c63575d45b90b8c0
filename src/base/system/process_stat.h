/* One process as /proc/PID/stat has it.
 *
 * Layer: base (not for pure code). Thread-safe; nothing is allocated.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process_stat {
    char state; /* R, S, D, T, t; Z and X: the process has ended */
    pid_t parent;
    uint64_t cpu_ticks;   /* of the process and of the children that it has waited for */
    uint64_t start_ticks; /* since the machine started */
    int end;              /* as wait(2) reports it; also 0 if we may not know it */
};

/* Returns false if there is no such process. */
bool process_stat_read(pid_t pid, struct process_stat *ret);
