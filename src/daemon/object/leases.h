/* Leases: a job that `muster run` started lives only as long as the connection that `muster run`
 * holds open.
 *
 * When the last connection of a lease closes, its jobs get the annotation muster.dev/stop and the
 * control core ends them. After the controller itself died, holders have a few seconds to connect
 * again.
 *
 * Layer: program (daemon). Thread: the loop's.
 */
#pragma once

#include "store/store.h"

#include <uv.h>

struct leases;

enum { LEASES_RECONNECT_MS = 5000 };

/* Checks every live job that names a lease: a job whose holder is dead ends at once; the holders of
 * the others have LEASES_RECONNECT_MS to connect again. */
int leases_new(uv_loop_t *loop, struct store *store, struct leases **ret, struct muster_err *err);
/* Run the loop once more after this. */
struct leases *leases_free(struct leases *leases);

void leases_opened(struct leases *leases, const char *id);
void leases_closed(struct leases *leases, const char *id);
bool leases_is_open(const struct leases *leases, const char *id);

/* Writes the annotation that makes the control core end a job; if the job is finished, deletes its
 * pods that still run. `why` is a sentence. */
int leases_stop_job(struct store *store, const json_t *job, const char *why,
                    struct muster_err *err);
