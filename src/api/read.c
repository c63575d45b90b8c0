/* The verbs get and list. Layer: services. */
#include "api/options.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"

#include <string.h>

enum { LIMIT_MAX = 100000 };

int verb_get(struct api_call *call, struct muster_err *err)
{
    muster_auto(doc) json_t *object = NULL;
    const struct api_hooks *hooks = &call->api->hooks;
    int64_t version = 0;
    int r = options_version(call, &version, err);
    r = r < 0 ? r : options_not_older(call, version, err);
    r = r < 0 ? r : store_get(call->api->store, call_key(call), &object, err);
    if (r == 0 && hooks->add_live) {
        hooks->add_live(hooks->arg, call->route.resource->plural, object);
    }
    return r < 0 ? r : call_send_object(call, 200, object, err);
}

static void note_change(void *changed, const struct store_change *change)
{
    (void)change;
    *(bool *)changed = true;
}

/* The state of that version is the present state if no object of the kind has changed since then;
 * older states are not kept. */
static int check_exact(struct api_call *call, int64_t version, struct muster_err *err)
{
    const struct store_watch_options options = {call->route.resource->plural, NULL, version};
    struct store_watch *watch = NULL;
    bool changed = false;
    int r = store_watch(call->api->store, &options, note_change, &changed, &watch, err);
    store_unwatch(watch);
    return r == MUSTER_EGONE || (r == 0 && changed)
               ? muster_fail(err, MUSTER_EGONE,
                             "The resourceVersion for the provided list is too old.")
               : r;
}

/* *ret: the version that the list must have; 0: the newest. */
static int check_version(struct api_call *call, int64_t *ret, struct muster_err *err)
{
    const char *match = http_query(call->request, "resourceVersionMatch");
    int64_t version = 0;
    *ret = 0;
    int r = options_version(call, &version, err);
    r = r < 0 ? r : options_not_older(call, version, err);
    if (r == 0 && match && strcmp(match, "Exact") == 0) {
        *ret = version;
        return check_exact(call, version, err);
    }
    return r;
}

static int list_and_send(struct api_call *call, const struct call_selectors *selectors,
                         struct muster_err *err)
{
    const char *next = http_query(call->request, "continue");
    struct store_query query = {
        .resource = call->route.resource->plural,
        .namespace = *call->route.namespace ? call->route.namespace : NULL,
        .labels = &selectors->labels,
        .fields = &selectors->fields,
        .next = next && *next ? next : NULL,
    };
    struct store_page page = {0};
    int64_t version = 0;
    int r = query_number(call->request, "limit", &query.limit, err);
    r = r < 0 ? r : check_version(call, &version, err);
    query.limit = query.limit > LIMIT_MAX ? LIMIT_MAX : query.limit;
    r = r < 0 ? r : store_list(call->api->store, &query, &page, err);
    page.version = version ? version : page.version;
    r = r < 0 ? r : call_send_page(call, &page, err);
    store_page_done(&page);
    return r;
}

int verb_list(struct api_call *call, struct muster_err *err)
{
    if (http_query_bool(call->request, "watch")) {
        return verb_watch(call, err);
    }
    struct call_selectors selectors;
    int r = call_selectors(call, &selectors, err);
    r = r < 0 ? r : list_and_send(call, &selectors, err);
    call_selectors_done(&selectors);
    return r;
}
