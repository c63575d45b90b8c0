/* Stores the environments of the shells from which jobs were submitted, for the ranks of these
 * jobs.
 *
 * The file is MUSTER_HOME/environments/ID, mode 0600, a list in the format of base/variables.h. The
 * job names the ID (muster.dev/environment); values are in no object, no record and no log. A file
 * is written before its job (PUT …/environments/ID) and read whenever a rank starts. It is deleted
 * when the last job that names it is over and its pods have ended. A file that no job has named for
 * a minute is deleted, too, and so is one that no job names when the controller starts.
 *
 * Layer: program (daemon). Thread: the loop's. Ownership: environments_new/environments_free.
 */
#pragma once

#include "base/home.h"
#include "base/variables.h"
#include "store/store.h"

#include <jansson.h>
#include <muster/err.h>
#include <stdbool.h>
#include <uv.h>

struct environments;

int environments_new(uv_loop_t *loop, struct store *store, const struct home *home,
                     struct environments **ret, struct muster_err *err);
/* Run the loop once more after this. `environments` may be NULL. */
void environments_free(struct environments *environments);

/* Keeps a list under a new or an old ID. `then` is called once, from the loop, when the list is on
 * the disk, or with the error; the loop does not wait for the disk. If environments_put returns a
 * negative code (the list is not valid), `then` is not called. */
typedef void environments_put_fn(void *arg, int r, const struct muster_err *err);
int environments_put(struct environments *environments, const char *id, const char *bytes,
                     size_t count, environments_put_fn *then, void *arg, struct muster_err *err);
/* Removes the environment, unless a job names it. */
void environments_withdraw(struct environments *environments, const char *id);

/* Returns the path of the file with a job's environment, which the caller frees; NULL if the job
 * names none. */
char *environments_path(const struct home *home, const json_t *job);
bool environments_has(const struct home *home, const json_t *job);

/* Returns a variable of the job's environment, given by name or from the shell; the caller frees
 * it. NULL if there is none. */
char *environments_value(const struct home *home, const json_t *job, const char *name);
