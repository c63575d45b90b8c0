/* A command on its way into a rank: what is to run, as an open file, and which supervisor takes it.
 *
 * Layer: program (daemon). Thread: the loop's. Ownership: new/free.
 */
#pragma once

#include "base/home.h"
#include "store/store.h"

struct rank_command;

/* Makes a command. `how`: {"command": ["sh"], "container"?, "stdin"?, "tty"?, "rows"?, "columns"?,
 * "term"?}. The pod must run. MUSTER_EINVAL: it has no such container; MUSTER_EGONE: it has ended;
 * MUSTER_EAGAIN: the container does not run now. */
int rank_command_new(const struct home *home, struct store *store, const json_t *pod,
                     const json_t *how, struct rank_command **ret, struct muster_err *err);

/* Checks that the container runs. Returns the same errors. */
int rank_check_container(const json_t *pod, const char *container, struct muster_err *err);

/* Gives the client's end of a connection to the supervisor, which speaks the frames of
 * process/wire/frame.h on it; the caller must still close the descriptor. MUSTER_EUNAVAIL: no
 * supervisor took it. */
int rank_command_send(const struct rank_command *command, int fd, struct muster_err *err);

/* `command` may be NULL. */
void rank_command_free(struct rank_command *command);
