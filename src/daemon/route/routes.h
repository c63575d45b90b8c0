/* What the daemon adds to the Kubernetes API: /muster/v1/…, pod logs, leases.
 *
 *     GET  /muster/v1/status     {"pid","version","home","jobs","keep","server","serverError"}
 *     PUT /muster/v1/keep        {"keep":true}: stays without clients and jobs
 *     POST /muster/v1/shutdown   {"jobs":"end"|"keep"}
 *     PUT, DELETE /muster/v1/environments/ID   see daemon/machine/environments.h
 *     GET  /muster/v1/leases/ID  held open by `muster run` (answered by api)
 *     GET  /muster/v1/namespaces/NS/pods…   see daemon/route/pod.h
 *     GET, DELETE /muster/v1/history…       see daemon/route/history.h
 *
 * Layer: program (daemon). Thread: the loop's.
 */
#pragma once

#include "api/api.h"
#include "base/home.h"
#include "daemon/agent/agent.h"
#include "daemon/history/sweep.h"
#include "daemon/machine/environments.h"
#include "daemon/object/leases.h"
#include "process/machine/gpus.h"

struct routes;

struct routes_options {
    uv_loop_t *loop;
    const struct home *home;
    struct store *store;
    struct leases *leases;
    const struct gpus *gpus;
    const char *node_name;
    struct agent *agent;
    struct environments *environments;
    const struct sweep *sweep;
};

enum routes_leaving { ROUTES_STAY, ROUTES_LEAVE_NOW, ROUTES_LEAVE_WHEN_DONE };

int routes_new(const struct routes_options *options, struct routes **ret,
               struct api_hooks *ret_hooks, struct muster_err *err);
struct routes *routes_free(struct routes *routes);

/* Sets, for /status, the address (borrowed), or NULL and why kubectl is not served. */
void routes_serve_at(struct routes *routes, const char *server, const struct muster_err *why_not);

/* Whether `muster up` was given, to this controller or to an earlier one. */
bool routes_keep(const struct routes *routes);

/* Returns what `muster down` asked for. */
enum routes_leaving routes_leaving(const struct routes *routes);

/* Sets a hook that is called when `muster down` asks, before the answer. */
void routes_on_shutdown(struct routes *routes, void (*asked)(void *data), void *data);
