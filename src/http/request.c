/* A request as handlers see it, made from libmicrohttpd's data. See http.h.
 *
 * Layer: services. Ownership: names and values are the connection's; the arrays live for the call.
 */
#include "http/internal.h"

#include <string.h>

struct pairs {
    struct http_pair list[PAIRS_MAX];
    size_t count;
};

static const char *find(const struct http_pair *pairs, size_t count, const char *name,
                        int (*compare)(const char *, const char *))
{
    for (size_t i = 0; i < count; i++) {
        if (compare(pairs[i].name, name) == 0) {
            return pairs[i].value;
        }
    }
    return NULL;
}

const char *http_query(const struct http_request *request, const char *name)
{
    return find(request->query, request->query_count, name, strcmp);
}

const char *http_header(const struct http_request *request, const char *name)
{
    return find(request->headers, request->header_count, name, strcasecmp);
}

bool http_query_bool(const struct http_request *request, const char *name)
{
    const char *value = http_query(request, name);
    return value && (*value == '\0' || strcmp(value, "1") == 0 || strcasecmp(value, "t") == 0 ||
                     strcasecmp(value, "true") == 0);
}

static enum MHD_Result collect(void *arg, enum MHD_ValueKind kind, const char *name,
                               const char *value)
{
    struct pairs *pairs = arg;
    (void)kind;
    if (pairs->count < PAIRS_MAX && name) {
        pairs->list[pairs->count++] = (struct http_pair){name, value ? value : ""};
    }
    return MHD_YES;
}

void exchange_call(struct exchange *x, const char *method)
{
    struct pairs query = {.count = 0};
    struct pairs headers = {.count = 0};
    MHD_get_connection_values(x->connection, MHD_GET_ARGUMENT_KIND, collect, &query);
    MHD_get_connection_values(x->connection, MHD_HEADER_KIND, collect, &headers);
    bool too_large = x->oversized || buf_failed(&x->body);
    struct http_request request = {
        .method = method,
        .path = x->path,
        .query = query.list,
        .query_count = query.count,
        .headers = headers.list,
        .header_count = headers.count,
        .body = too_large ? "" : buf_str(&x->body),
        .body_bytes = too_large ? 0 : x->body.used,
        .too_large = too_large,
        .body_bytes_max = x->server->limits.body_bytes_max,
        .head_fault = x->head_fault,
    };
    x->server->handler(x->server->arg, &request, &x->reply);
}
