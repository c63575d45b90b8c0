/* See handshake.h. */
#include "websocket/handshake.h"

#include "base/err.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <string.h>

enum { SHA1_BYTES = 20, KEY_BYTES = 24 };

static const char magic[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; /* RFC 6455 section 1.3 */

/* Whether the word is in a header's list. Words are separated by commas and spaces. */
static bool lists(const char *list, const char *word, bool fold)
{
    static const char separators[] = ", \t";
    size_t length = strlen(word);
    while (list && *list) {
        list += strspn(list, separators);
        size_t next = strcspn(list, separators);
        if (next == length &&
            (fold ? strncasecmp(list, word, length) == 0 : strncmp(list, word, length) == 0)) {
            return true;
        }
        list += next;
    }
    return false;
}

bool websocket_is_asked(const struct http_request *request, const char *protocol)
{
    return lists(http_header(request, "Connection"), "Upgrade", true) &&
           lists(http_header(request, "Upgrade"), protocol, true);
}

/* Whether the client offers the subprotocol. The list of subprotocols may be in several headers. */
static bool offers(const struct http_request *request, const char *subprotocol)
{
    for (size_t i = 0; i < request->header_count; i++) {
        if (strcasecmp(request->headers[i].name, "Sec-WebSocket-Protocol") == 0 &&
            lists(request->headers[i].value, subprotocol, false)) {
            return true;
        }
    }
    return false;
}

const char *websocket_subprotocol(const struct http_request *request, const char *const *ours)
{
    while (*ours && !offers(request, *ours)) {
        ours++;
    }
    return *ours;
}

int websocket_accept_key(const char *key, char ret[WEBSOCKET_ACCEPT_BYTES])
{
    char text[KEY_BYTES + sizeof magic];
    unsigned char digest[SHA1_BYTES];
    gnutls_datum_t encoded;
    if (strlen(key) != KEY_BYTES) {
        return MUSTER_EINVAL;
    }
    int count = snprintf(text, sizeof text, "%s%s", key, magic);
    const gnutls_datum_t data = {digest, sizeof digest};
    if (gnutls_hash_fast(GNUTLS_DIG_SHA1, text, (size_t)count, digest) < 0 ||
        gnutls_base64_encode2(&data, &encoded) < 0) {
        return MUSTER_EINTERNAL;
    }
    (void)snprintf(ret, WEBSOCKET_ACCEPT_BYTES, "%.*s", (int)encoded.size, encoded.data);
    gnutls_free(encoded.data);
    return 0;
}

int websocket_accept(const struct http_request *request, struct http_reply *reply,
                     const char *subprotocol, void (*take)(void *arg, struct http_socket *socket),
                     void *arg, struct muster_err *err)
{
    const char *version = http_header(request, "Sec-WebSocket-Version");
    const char *key = http_header(request, "Sec-WebSocket-Key");
    char accept[WEBSOCKET_ACCEPT_BYTES];
    if (!version || strcmp(version, "13") != 0 || !key || websocket_accept_key(key, accept) < 0) {
        return muster_fail(err, MUSTER_EINVAL,
                           "no WebSocket of version 13: Sec-WebSocket-Version and "
                           "Sec-WebSocket-Key are asked for");
    }
    http_reply_header(reply, "Sec-WebSocket-Accept", accept);
    http_reply_header(reply, "Sec-WebSocket-Protocol", subprotocol);
    int r = http_reply_leave(reply, "websocket", take, arg);
    return r < 0 ? muster_fail(err, r, "this connection cannot become a WebSocket") : 0;
}
