/* Finds out which user is at the other end of a Unix socket.
 *
 * An abstract name is listed in /proc/net/unix, and any user of the machine can read or compute
 * what a hello contains. Only the kernel can tell a rank from a stranger.
 *
 * Layer: comm. Memory: none. Thread: any.
 */
#pragma once

#include <stdbool.h>

/* The process at the other end ran as our user when it connected, or began to listen. False of a
 * socket of another kind, too: nobody vouches for its other end. */
bool credentials_are_ours(int fd);

/* Our user's number stands for other users as well, which the kernel does not tell apart here: that
 * of nobody, in a user namespace that lacks some users. Nobody's credentials are ours then. */
bool credentials_are_shared(void);
