/* Lets other hosts learn at once that this process died, whatever its memory.
 *
 * The kernel frees a dying process's memory before it closes its sockets: 62 ms for each GiB. So a
 * second process, the witness, shares our memory, and nothing else. While it lives, our memory has
 * another user: our end frees nothing, and the sockets close within a millisecond. The witness then
 * ends too, and the memory is freed. It holds one descriptor of its own (our pidfd), none of ours,
 * and a stack of 16 KiB; it wakes once a second. Its end sends no signal, so that wait(2) and
 * SIGCHLD do not report it.
 *
 * Layer: comm. Memory: static. Thread: any.
 */
#pragma once

#include <sys/types.h>

/* Holds are counted: the first hold starts the witness, the last release ends it. If the kernel
 * refuses a witness (no pidfd_open, a seccomp filter, too many processes), everything works without
 * one. */
void witness_hold(void);
void witness_release(void);

/* Returns the process id of the witness; 0: there is none. */
pid_t witness_pid(void);
