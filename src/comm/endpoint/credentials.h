/* Finds out which user is at the other end of a Unix socket.
 *
 * An abstract name is listed in /proc/net/unix, and any user of the machine can read or compute
 * what a hello contains. Only the kernel can tell a rank from a stranger.
 *
 * Layer: comm. Memory: none. Thread: any.
 */
#pragma once

#include <stdbool.h>

/* Whether the process at the other end ran as our user when it connected, or began to listen. False
 * for another kind of socket as well, because nobody vouches for its other end. */
bool credentials_are_ours(int fd);

/* Whether our user's number stands for other users as well, whom the kernel does not tell apart
 * here: the number of nobody, in a user namespace that lacks some users. Then no credentials count
 * as ours. */
bool credentials_are_shared(void);
