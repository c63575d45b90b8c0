/* The Python stacks of one process, without its help: a thread of it, named "muster-stacks", waits
 * for a signal whose handler writes the stacks of all threads into a file in memory
 * (python/sitecustomize.py). The signal goes to that thread alone: no system call of another is
 * interrupted, and an exec, which ends the thread, ends the signal with it.
 *
 *     python_stacks_ask ─▶ 0: asked ─▶ python_stacks_poll … ─▶ true: the text is whole
 *                     └──▶ negative: why not
 *
 * Layer: services (reads /proc). Thread: any; processes that were forked from each other share the
 * file, so one of them at a time. Ownership: ask/done.
 */
#pragma once

#include "process/machine/descendants.h"

#include <muster/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum {
    PYTHON_STACKS_SIGNAL = 47, /* real-time; glibc, musl and torch use others */
    PYTHON_STACKS_BYTES_MAX = 64 << 10,
};

struct python_stacks {
    pid_t pid;
    pid_t thread;
    int file_fd;
    size_t size_bytes; /* when it was looked at last */
};

/* Empties the file and sends the signal. MUSTER_EUNSUPPORTED: no Python process with our handler;
 * MUSTER_EAGAIN: not now (stopped); MUSTER_ENOENT: gone. The sentence says it. */
int python_stacks_ask(const struct descendant *process, struct python_stacks *ret,
                      struct muster_err *err);
/* Looks again, a few milliseconds after the last look: true when all was written. */
bool python_stacks_poll(struct python_stacks *stacks);
/* What was written until now, without the thread that wrote it; the caller frees. NULL when that is
 * nothing. */
char *python_stacks_text(const struct python_stacks *stacks);
void python_stacks_done(struct python_stacks *stacks);
