/* Finds the name of the client that a call comes from, for the owners of fields (patch/owners.h).
 *
 * Layer: services.
 */
#include "api/internal.h"

#include "base/doc.h"
#include "base/err.h"
#include "base/time/clock.h"
#include "base/time/timestamp.h"

#include <stdio.h>
#include <string.h>

/* A client that does not name its manager gets the name of its program. */
static void name_manager(const struct api_call *call, char ret[CALLER_NAME_BYTES])
{
    const char *given = http_query(call->request, "fieldManager");
    const char *agent = http_header(call->request, "User-Agent");
    const char *name = given && *given ? given : agent && *agent ? agent : "unknown";
    size_t length = name == given ? strlen(name) : strcspn(name, "/");
    (void)snprintf(ret, CALLER_NAME_BYTES, "%.*s", (int)length, name);
}

struct owner caller_read(const struct api_call *call, const char *operation, struct caller *ret)
{
    name_manager(call, ret->name);
    timestamp_seconds(clock_unix_ms(), ret->now);
    return (struct owner){ret->name, operation, call->route.subresource,
                          call->route.resource->api_version, ret->now};
}

int call_own_new(struct api_call *call, bool applied, struct muster_err *err)
{
    struct caller caller;
    struct owner owner = caller_read(call, "Apply", &caller);
    json_object_del(doc_at(call->body, "metadata"), "managedFields");
    return applied && owners_begin(call->body, &owner) < 0 ? err_no_memory(err) : 0;
}

int call_own_changes(const struct api_call *call, const json_t *before, json_t *object,
                     struct muster_err *err)
{
    struct caller caller;
    struct owner owner = caller_read(call, "Update", &caller);
    return call->applied || owners_update(before, object, &owner) == 0 ? 0 : err_no_memory(err);
}
