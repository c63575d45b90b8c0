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
    PYTHON_STACKS_SIGNAL = 47, /* a real-time signal; glibc, musl and torch use others */
    PYTHON_STACKS_BYTES_MAX = 64 << 10,
};

struct python_stacks {
    pid_t pid;
    pid_t thread;
    int file_fd;
    size_t size_bytes; /* the file's size at the last poll */
};

/* Empties the file and sends the signal. MUSTER_EUNSUPPORTED: not a Python process with muster's
 * handler; MUSTER_EAGAIN: not possible now (the process is stopped); MUSTER_ENOENT: the process is
 * gone. err->text says which. */
int python_stacks_ask(const struct descendant *process, struct python_stacks *ret,
                      struct muster_err *err);
/* To be called again every few milliseconds: returns true when the whole answer was written. */
bool python_stacks_poll(struct python_stacks *stacks);
/* Returns what was written until now, without the thread that wrote it; the caller frees. NULL when
 * nothing was written. */
char *python_stacks_text(const struct python_stacks *stacks);
void python_stacks_done(struct python_stacks *stacks);
