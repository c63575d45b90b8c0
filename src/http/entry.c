/* What is decided about a request before its body is read: whether its target is text, and whether
 * who sent it may come in.
 *
 * A target that holds a NUL byte (%00) would be cut there by everything that reads it, and one that
 * is no UTF-8 is in no object's name: neither reaches a route.
 *
 * Layer: services. Thread: the loop's. Ownership: nothing is kept.
 */
#include "http/internal.h"

#include "base/text.h"

#include <ctype.h>
#include <string.h>

/* The place of a request whose target is no text, until its exchange begins. */
static char no_text_place;

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

void *entry_look_at(void *server, const char *target, struct MHD_Connection *connection)
{
    (void)server;
    (void)connection;
    char decoded[CONNECTION_MEMORY_BYTES]; /* no request line is longer */
    if (strlen(target) >= sizeof decoded) {
        return &no_text_place;
    }
    size_t bytes = decode(target, decoded);
    bool is_text = !memchr(decoded, '\0', bytes) && text_is_utf8(decoded, bytes);
    return is_text ? NULL : &no_text_place;
}

bool entry_is_no_text(const void *place)
{
    return place == &no_text_place;
}

/* The time this takes says nothing about where the token differs. */
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
