/* Replies that stay open: they are counted and bounded, and each is closed once, whichever side
 * leaves first.
 *
 * Layer: services. Ownership: `close` frees what live is the first member of.
 */
#include "api/internal.h"

static void on_gone(void *arg)
{
    live_close(arg);
}

int live_add(struct api *api, struct live *live, struct http_reply *reply, size_t *count,
             void (*close)(struct live *), struct muster_err *err)
{
    if (api->watch_count + api->lease_count >= LIVE_MAX) {
        return muster_fail(err, MUSTER_EAGAIN, "too many watches and leases: the limit is %d",
                           LIVE_MAX);
    }
    *live = (struct live){
        .api = api, .next = api->lives, .count = count, .close = close, .reply = reply};
    if (api->lives) {
        api->lives->previous = live;
    }
    api->lives = live;
    ++*count;
    reply->on_gone = on_gone;
    reply->arg = live;
    return 0;
}

void live_close(struct live *live)
{
    struct api *api = live->api;
    if (live->previous) {
        live->previous->next = live->next;
    } else {
        api->lives = live->next;
    }
    if (live->next) {
        live->next->previous = live->previous;
    }
    --*live->count;
    live->close(live);
}

void live_end(struct live *live)
{
    http_reply_end(live->reply);
    live_close(live);
}
