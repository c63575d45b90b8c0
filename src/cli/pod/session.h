/* The client's side of an exec session: connects this terminal, or these pipes, with a command in
 * a rank.
 *
 * Layer: cli. Blocks until the command has ended; there is one buffer for each direction, so a side
 * that does not read stops the other.
 */
#pragma once

#include <muster/err.h>
#include <stdbool.h>

enum { SESSION_LOST = 137 }; /* the rank ended while the command ran */

/* Gets the size of the terminal on standard input; false if that is not a terminal. */
bool session_window(int *ret_rows, int *ret_columns);

/* Runs a session on socket_fd, in the frames of process/wire/frame.h. `input`: standard input goes
 * to the command; `tty`: the command has a terminal of its own, and this one passes on every key.
 * Returns the command's exit code; negative: the connection broke the protocol. */
int session_follow(int socket_fd, bool input, bool tty, struct muster_err *err);
