/* A process of this machine: when it ends, that is proven, whoever holds its sockets.
 *
 * Layer: program (coordinator). Memory: start/stop; stop returns before the loop has let go of it.
 * Thread: the loop's.
 */
#pragma once

#include <uv.h>

struct server_watch;

/* The process at the other end of a Unix socket. NULL: there is none to watch (another host's, one
 * of another PID namespace, a kernel without pidfd_open): its end shows in other ways. */
struct server_watch *server_watch_start(uv_loop_t *loop, int socket, void (*died)(void *data),
                                        void *data);
void server_watch_stop(struct server_watch *watch); /* NULL is fine */
