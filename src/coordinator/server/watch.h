/* Watches a process of this machine: its end is proven, whoever holds its sockets.
 *
 * Layer: program (coordinator). Memory: start/stop; stop returns before the loop has let go of it.
 * Thread: the loop's.
 */
#pragma once

#include "coordinator/arbiter/arbiter.h"

#include <uv.h>

enum { SERVER_WATCH_TEXT_BYTES = 64 };

struct server_watch;

/* The process at the other end of a socket, which has said HELLO: a Unix socket's as the kernel
 * knows it, of TCP the one that it says to be, where both ends have the same address and numbers of
 * processes mean the same. NULL: there is none to watch (another host's, one of another PID
 * namespace, a kernel without pidfd_open): its end shows in other ways. */
struct server_watch *server_watch_start(uv_loop_t *loop, int socket, const struct wire_hello *hello,
                                        void (*died)(void *data), void *data);
/* Identifies the process, also for another coordinator of this machine. */
struct server_process {
    uint64_t space; /* core/pid_space.h */
    uint64_t began; /* in the kernel's ticks; 0: it does not say */
    uint32_t pid;
};
struct server_process server_watch_process(const struct server_watch *watch);
/* NULL: there is none to watch; ret_gone: as it is no more, which is proven. */
struct server_watch *server_watch_resume(uv_loop_t *loop, const struct server_process *process,
                                         void (*died)(void *data), void *data, bool *ret_gone);
/* Once it has died: why, and "by signal 11 (SIGSEGV)", or "". Pending: it is known when its parent
 * has waited for it, by kernels since 6.15. */
enum arbiter_cause server_watch_cause(const struct server_watch *watch,
                                      char ret_text[SERVER_WATCH_TEXT_BYTES]);
void server_watch_stop(struct server_watch *watch); /* NULL is fine */
