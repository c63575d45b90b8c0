/* Open descriptors between processes: a packet and what comes with it over a Unix socket.
 *
 * Layer: services. Ownership: the sender keeps its descriptors; what was received is the
 * receiver's, and CLOEXEC. Thread: any; nothing blocks.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

enum { PASSING_FDS_MAX = 4 };

/* Sends one packet with descriptors. Returns 0 or a negative errno. */
int passing_send(int socket_fd, const void *bytes, size_t count, const int *fds, size_t fd_count);

/* Returns the length of the packet; 0 at the end of the file; a negative errno. Descriptors beyond
 * PASSING_FDS_MAX are closed. */
ssize_t passing_receive(int socket_fd, void *bytes, size_t room, int ret_fds[PASSING_FDS_MAX],
                        size_t *ret_fd_count);

void passing_close(const int *fds, size_t count);

/* Closes every descriptor from 3 on except these (negative ones are ignored), so that a forked
 * process keeps none of its parent's. */
void passing_keep_only(const int *fds, size_t count);
