/* Get and list. Layer: services. */
#include "api/internal.h"

#include "base/cleanup.h"
#include "base/doc.h"

enum { LIMIT_MAX = 100000 };

int verb_get(struct api_call *call, struct muster_err *err)
{
    muster_auto(doc) json_t *object = NULL;
    const struct api_hooks *hooks = &call->api->hooks;
    int r = store_get(call->api->store, call_key(call), &object, err);
    if (r == 0 && hooks->add_live) {
        hooks->add_live(hooks->arg, call->route.resource->plural, object);
    }
    return r < 0 ? r : call_send_object(call, 200, object, err);
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
    int r = query_number(call->request, "limit", &query.limit, err);
    query.limit = query.limit > LIMIT_MAX ? LIMIT_MAX : query.limit;
    r = r < 0 ? r : store_list(call->api->store, &query, &page, err);
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
