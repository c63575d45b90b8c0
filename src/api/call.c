/* Reads what verbs need from a call: the key, the selectors and numbers of the query; and ends its
 * transaction.
 *
 * Layer: services. Ownership: see internal.h.
 */
#include "api/internal.h"
#include "api/shape/shape.h"

#include "base/err.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct store_key call_key(const struct api_call *call)
{
    return (struct store_key){call->route.resource->plural, call->route.namespace,
                              call->route.name};
}

int call_finish(struct api_call *call, int r, struct muster_err *err)
{
    if (r < 0 || call->dry_run) {
        store_rollback(call->api->store);
        return r;
    }
    return store_commit(call->api->store, err);
}

/* ---- the query ---- */

/* Is `key` among the words of `fields`? */
static bool has_word(const char *fields, const char *key)
{
    size_t length = strlen(key);
    for (const char *at = fields; (at = strstr(at, key)); at += length) {
        bool starts = at == fields || at[-1] == ' ';
        if (starts && (at[length] == ' ' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

static int check_fields(const struct resource *resource, const struct selector *fields,
                        struct muster_err *err)
{
    for (size_t i = 0; i < fields->count; i++) {
        const char *key = fields->requirements[i].key;
        if (!has_word("metadata.name metadata.namespace", key) &&
            !has_word(resource->fields, key)) {
            return muster_fail(err, MUSTER_EINVAL, "field label not supported: %s", key);
        }
    }
    return 0;
}

int call_selectors(const struct api_call *call, struct call_selectors *ret, struct muster_err *err)
{
    *ret = (struct call_selectors){0};
    int r = selector_parse_labels(http_query(call->request, "labelSelector"), &ret->labels, err);
    r = r < 0
            ? r
            : selector_parse_fields(http_query(call->request, "fieldSelector"), &ret->fields, err);
    r = r < 0 ? r : check_fields(call->route.resource, &ret->fields, err);
    return r < 0 || shape_take_paths(call->route.resource->shape, &ret->fields) == 0
               ? r
               : err_no_memory(err);
}

void call_selectors_done(struct call_selectors *selectors)
{
    selector_done(&selectors->labels);
    selector_done(&selectors->fields);
}

int query_number(const struct http_request *request, const char *name, int64_t *ret,
                 struct muster_err *err)
{
    const char *text = http_query(request, name);
    char *end;
    if (!text || !*text) {
        return 0;
    }
    errno = 0;
    int64_t value = strtoll(text, &end, 10);
    if (errno || *end || value < 0) {
        return muster_fail(err, MUSTER_EINVAL, "%s must be a number from 0: %.40s", name, text);
    }
    *ret = value;
    return 0;
}
