/* See environment.h. */
#include "daemon/route/environment.h"

#include "api/api.h"
#include "base/err.h"

#include <stdlib.h>

/* A client that waits until its environment is on the disk. */
struct putting {
    struct http_reply *reply; /* NULL: the client has left */
};

static void on_putting_gone(void *arg)
{
    ((struct putting *)arg)->reply = NULL;
}

static void on_put(void *arg, int r, const struct muster_err *err)
{
    struct putting *putting = arg;
    if (putting->reply && r < 0) {
        api_send_error(putting->reply, err);
    } else if (putting->reply) {
        api_send_json(putting->reply, 200, json_object());
    }
    free(putting);
}

void environment_routes_put(struct environments *environments, const char *id,
                            const struct http_request *request, struct http_reply *reply)
{
    struct muster_err err = MUSTER_ERR_INIT;
    struct putting *putting = calloc(1, sizeof *putting);
    int r = putting ? 0 : err_no_memory(&err);
    if (r == 0) {
        putting->reply = reply;
        reply->arg = putting;
        reply->on_gone = on_putting_gone;
        r = environments_put(environments, id, request->body, request->body_bytes, on_put, putting,
                             &err);
    }
    if (r < 0) {
        reply->on_gone = NULL;
        free(putting);
        api_send_error(reply, &err);
    }
}
