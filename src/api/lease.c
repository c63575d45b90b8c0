/* A lease: a reply held open for as long as its client lives. What a lease means is the
 * controller's business (a job that carries its id ends with it).
 *
 * Layer: services.
 */
#include "api/internal.h"
#include "base/err.h"

#include <stdlib.h>
#include <string.h>

struct lease {
    struct live live;
    char *id;
};

static void close_lease(struct live *live)
{
    struct lease *lease = (struct lease *)live;
    const struct api_hooks *hooks = &live->api->hooks;
    if (hooks->lease_closed && !live->api->closing) {
        hooks->lease_closed(hooks->arg, lease->id);
    }
    free(lease->id);
    free(lease);
}

void lease_open(struct api *api, const char *id, struct http_reply *reply)
{
    struct muster_err err = MUSTER_ERR_INIT;
    struct lease *lease = calloc(1, sizeof *lease);
    char *copy = strdup(id);
    int r = lease && copy ? 0 : err_no_memory(&err);
    r = r < 0 ? r : live_add(api, &lease->live, reply, &api->lease_count, close_lease, &err);
    if (r < 0) {
        free(lease);
        free(copy);
        api_send_error(reply, &err);
        return;
    }
    lease->id = copy;
    /* The client reads this line before it creates its job: the lease is held from this moment. */
    if (http_reply_start(reply, 200, "application/json") < 0 ||
        http_reply_write(reply, "{}\n", 3) < 0) {
        live_close(&lease->live);
        return;
    }
    if (api->hooks.lease_opened) {
        api->hooks.lease_opened(api->hooks.arg, id);
    }
}
