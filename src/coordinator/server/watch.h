/* Watches a process of this machine, so that its end is certain even if another process has its
 * sockets.
 *
 * Layer: program (coordinator). Memory: start/stop; stop returns before the loop has let go of it.
 * Thread: the loop's.
 */
#pragma once

#include "coordinator/arbiter/arbiter.h"

#include <uv.h>

enum { SERVER_WATCH_TEXT_BYTES = 64 };

struct server_watch;

/* Watches the process at the other end of a socket, which has sent HELLO. For a Unix socket it is
 * the one that the kernel knows, for TCP the one that HELLO names, if both ends have the same
 * address and the same PID space. Returns NULL if it cannot be watched (it is on another host or in
 * another PID namespace, or the kernel has no pidfd_open): then its end shows in other ways. */
struct server_watch *server_watch_start(uv_loop_t *loop, int socket, const struct wire_hello *hello,
                                        void (*died)(void *data), void *data);
/* Identifies a process, also for another coordinator on this machine. */
struct server_process {
    uint64_t space; /* core/pid_space.h */
    uint64_t began; /* in the kernel's ticks; 0: not known */
    uint32_t pid;
};
struct server_process server_watch_process(const struct server_watch *watch);
/* Returns NULL if the process cannot be watched; ret_gone: because it has ended, which is
 * proven. */
struct server_watch *server_watch_resume(uv_loop_t *loop, const struct server_process *process,
                                         void (*died)(void *data), void *data, bool *ret_gone);
/* Returns the cause of the death, and a text such as "by signal 11 (SIGSEGV)", or "". PENDING: the
 * cause is known once its parent has waited for it, with kernels since 6.15. */
enum arbiter_cause server_watch_cause(const struct server_watch *watch,
                                      char ret_text[SERVER_WATCH_TEXT_BYTES]);
void server_watch_stop(struct server_watch *watch); /* the argument may be NULL */
