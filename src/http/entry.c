/* Decides about a request before its body is read: whether its target can be routed, and whether
 * its sender may enter.
 *
 * libmicrohttpd decodes the path before anybody routes it. A target that holds a NUL byte (%00)
 * would be cut there by everything that reads it, one that is no UTF-8 is in no object's name, and
 * an encoded slash in the path (%2F) would become a separator: none of them reaches a route.
 *
 * Layer: services. Thread: the loop's. Ownership: nothing is kept.
 */
#include "http/internal.h"

#include "base/text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* While a request has a target fault and no exchange yet, its place points to one of these
 * texts. */
static const char *const target_faults[] = {
    "the request's path or query is no text: it holds a NUL byte (%00) or is no UTF-8",
    "the request's path holds an encoded slash (%2F): no name contains one",
    "the request's query has too many parameters: 100 at most", /* PAIRS_MAX */
};

static int digit_of(char c)
{
    return isdigit((unsigned char)c) ? c - '0' : (tolower((unsigned char)c) - 'a') + 10;
}

/* Decodes as libmicrohttpd does: a % without two digits stands for itself. */
static size_t decode(const char *target, char *ret)
{
    size_t used = 0;
    for (const char *at = target; *at; used++) {
        bool escape =
            *at == '%' && isxdigit((unsigned char)at[1]) && isxdigit((unsigned char)at[2]);
        ret[used] = escape ? (char)(digit_of(at[1]) * 16 + digit_of(at[2])) : *at;
        at += escape ? 3 : 1;
    }
    return used;
}

/* A slash that is encoded in the query is allowed: it is data. */
static bool has_encoded_slash(const char *target)
{
    const char *end = strchrnul(target, '?');
    const char *slash = strcasestr(target, "%2f");
    return slash && slash < end;
}

static bool has_many_parameters(const char *query)
{
    size_t count = 1;
    for (const char *at = query; (at = strchr(at, '&')); at++) {
        count++;
    }
    return count > PAIRS_MAX;
}

/* libmicrohttpd is about to split the query, in place. It never answers a connection whose memory
 * this uses up (0.9.75), so it gets an empty query. */
static void drop_query(const char *target)
{
    char *query = strchr((char *)(uintptr_t)target, '?');
    if (query) {
        query[1] = '\0';
    }
}

void *entry_look_at(void *server, const char *target, struct MHD_Connection *connection)
{
    (void)server;
    (void)connection;
    char decoded[CONNECTION_MEMORY_BYTES]; /* no request line is longer than this */
    const char *const *fault = NULL;
    size_t bytes = strlen(target) < sizeof decoded ? decode(target, decoded) : 0;
    if (bytes == 0 || memchr(decoded, '\0', bytes) || !text_is_utf8(decoded, bytes)) {
        fault = &target_faults[0];
    } else if (has_encoded_slash(target)) {
        fault = &target_faults[1];
    }
    if (has_many_parameters(strchrnul(target, '?'))) {
        fault = &target_faults[2];
        drop_query(target);
    }
    return (void *)fault;
}

const char *entry_target_fault(const void *place)
{
    for (size_t i = 0; i < sizeof target_faults / sizeof target_faults[0]; i++) {
        if (place == &target_faults[i]) {
            return target_faults[i];
        }
    }
    return NULL;
}

/* ---- headers ---- */

struct head {
    size_t count;
    const char *length; /* Content-Length */
    bool lengths_differ;
    bool chunked;
    bool coded; /* the body has another encoding */
};

static enum MHD_Result note_header(void *arg, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
    struct head *head = arg;
    (void)kind;
    head->count++;
    if (strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0) {
        head->lengths_differ |= head->length && strcmp(head->length, value) != 0;
        head->length = value;
    } else if (strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0) {
        head->coded |= head->chunked || strcasecmp(value, "chunked") != 0;
        head->chunked = true;
    }
    return MHD_YES;
}

const char *entry_headers_fault(struct MHD_Connection *connection)
{
    struct head head = {0};
    MHD_get_connection_values(connection, MHD_HEADER_KIND, note_header, &head);
    if (head.count > PAIRS_MAX) {
        return "the request has too many headers: 100 at most";
    }
    if (head.lengths_differ) {
        return "the request says two lengths of its body (Content-Length)";
    }
    if (head.coded) {
        return "the request's Transfer-Encoding can only be chunked";
    }
    return head.chunked && head.length
               ? "the request's body is chunked (Transfer-Encoding) and has a Content-Length: one "
                 "of the two must go"
               : NULL;
}

uint64_t entry_announced_bytes(struct MHD_Connection *connection)
{
    const char *length =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    return length ? strtoull(length, NULL, 10)
                  : 0; /* libmicrohttpd has refused a length that is not a number */
}

/* ---- tokens ---- */

/* The time that the comparison takes does not show where the token differs. */
static bool same_secret(const char *a, const char *b)
{
    size_t length = strlen(a);
    size_t other = strlen(b);
    unsigned char difference = length != other;
    for (size_t i = 0; i < length && other > 0; i++) {
        difference |= (unsigned char)(a[i] ^ b[i % other]);
    }
    return difference == 0;
}

bool entry_permits(const struct http_server *server, struct MHD_Connection *connection)
{
    static const char scheme[] = "Bearer ";
    if (!server->token) {
        return true;
    }
    const char *given =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
    return given && strncasecmp(given, scheme, sizeof scheme - 1) == 0 &&
           same_secret(server->token, given + sizeof scheme - 1);
}

void entry_refuse(struct exchange *x)
{
    const struct http_server *server = x->server;
    http_reply_header(&x->reply, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    http_reply_send(&x->reply, MHD_HTTP_UNAUTHORIZED, server->refused_type, server->refused_body,
                    strlen(server->refused_body));
}
