/* MUSTER_HOME: the one folder where muster keeps its state, and the names of its files.
 *
 *     store.db          the objects                      api.sock     the API for our own verbs
 *     jobs/UID/…        a job's containers and logs       server.json  address of the TLS API
 *     history/NS/JOB/N  runs that are over and gone
 *     volumes/NS/CLAIM  what is in a claim                 tls/, token  its certificate, key, token
 *     lock              held by the one controller        daemon.log   the controller's log
 *                                                        daemon.log.old  what was before it
 *
 * Layer: base (does I/O; not for pure code). Ownership: home_done.
 */
#pragma once

#include <muster/err.h>

enum { HOME_PATH_BYTES_MAX = 495 };

struct home {
    char *path;   /* absolute */
    char *socket; /* api.sock; a short path elsewhere if that has more than the 107 bytes that a
                     socket's path may have */
};

/* Uses MUSTER_HOME, else $XDG_STATE_HOME/muster, else ~/.local/state/muster. Makes the folder
 * (0700). Returns MUSTER_ECREATE if it cannot be made or written. */
int home_open(struct home *ret, struct muster_err *err);
void home_done(struct home *home);

/* Returns "<home>/<name>"; the caller frees. */
char *home_file(const struct home *home, const char *name);
