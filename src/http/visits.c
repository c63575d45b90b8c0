/* Connections from outside: a share of them for each user, and a time limit for what a client has
 * to send.
 *
 * Over TCP any user of this machine may connect before a token is looked at. One user (one address,
 * where the user is not known) gets an eighth of the connections, and all but the owner together
 * half, so that nobody shuts the owner out. A connection that has not sent its request's head, or
 * body, within a limit from its first moment is closed, however slowly it goes on sending;
 * libmicrohttpd's own timeout begins again with each byte.
 *
 * Layer: services. Thread: the loop's. Ownership: a visit lives from libmicrohttpd's notice that a
 * connection started to the one that it closed.
 */
#include "http/internal.h"

#include "http/peer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { SHARE = 8, CHECKS_PER_LIMIT = 4, CHECK_MS_MAX = 1000, CHECK_MS_MIN = 10 };

struct visitor {
    struct visitor *next;
    bool is_user; /* otherwise id is an address */
    uint32_t id;
    unsigned count;
};

struct visit {
    struct visit *next;
    struct visit *previous;
    struct http_server *server;
    struct MHD_Connection *connection;
    struct visitor *visitor; /* NULL: counts for no visitor */
    uint64_t deadline_ms;    /* 0: no deadline */
};

/* ---- shares ---- */

static bool is_owner(const struct http_server *server, const struct visitor *visitor)
{
    return visitor->is_user && visitor->id == server->limits.owner_uid;
}

static struct visitor *find(struct http_server *server, bool is_user, uint32_t id)
{
    struct visitor *at = server->visitors;
    while (at && (at->is_user != is_user || at->id != id)) {
        at = at->next;
    }
    return at;
}

static struct visitor *find_or_add(struct http_server *server, bool is_user, uint32_t id)
{
    struct visitor *visitor = find(server, is_user, id);
    if (!visitor && (visitor = calloc(1, sizeof *visitor))) {
        *visitor = (struct visitor){.next = server->visitors, .is_user = is_user, .id = id};
        server->visitors = visitor;
    }
    return visitor;
}

static void forget_if_gone(struct http_server *server, struct visitor *visitor)
{
    for (struct visitor **at = &server->visitors; *at && visitor->count == 0; at = &(*at)->next) {
        if (*at == visitor) {
            *at = visitor->next;
            free(visitor);
            return;
        }
    }
}

static unsigned strangers(const struct http_server *server)
{
    unsigned count = 0;
    for (const struct visitor *at = server->visitors; at; at = at->next) {
        count += is_owner(server, at) ? 0 : at->count;
    }
    return count;
}

static bool has_room(const struct http_server *server, const struct visitor *visitor)
{
    unsigned all = server->limits.connections_max;
    unsigned share = all / SHARE > 0 ? all / SHARE : 1;
    return is_owner(server, visitor) ||
           (visitor->count < share && strangers(server) < (all > 1 ? all / 2 : 1));
}

enum MHD_Result visits_admit(void *arg, const struct sockaddr *address, socklen_t length)
{
    struct http_server *server = arg;
    struct sockaddr_in client;
    uid_t uid = 0;
    server->arriving = NULL;
    if (length < sizeof client || address->sa_family != AF_INET) {
        return MHD_YES; /* a connection to the Unix socket, which only its owner can open */
    }
    memcpy(&client, address, sizeof client);
    const struct sockaddr_in own = {.sin_family = AF_INET,
                                    .sin_port = htons((uint16_t)server->port),
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    bool is_user = peer_uid(&client, &own, &uid);
    struct visitor *visitor = find_or_add(server, is_user, is_user ? uid : client.sin_addr.s_addr);
    if (!visitor) {
        return MHD_NO;
    }
    if (!has_room(server, visitor)) {
        forget_if_gone(server, visitor);
        return MHD_NO;
    }
    server->arriving = visitor;
    return MHD_YES;
}

/* ---- time limits ---- */

static void on_check(uv_timer_t *timer)
{
    struct http_server *server = timer->data;
    uint64_t now_ms = uv_now(server->loop);
    for (struct visit *at = server->visits; at; at = at->next) {
        if (at->deadline_ms != 0 && now_ms >= at->deadline_ms) {
            const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(at->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
            at->deadline_ms = 0;
            (void)shutdown(info->connect_fd, SHUT_RDWR); /* libmicrohttpd notices it */
        }
    }
    if (!server->visits) {
        uv_timer_stop(timer);
    }
}

static void start_checks(struct http_server *server)
{
    uint64_t every_ms = server->limits.head_timeout_ms / CHECKS_PER_LIMIT;
    every_ms = every_ms < CHECK_MS_MIN ? CHECK_MS_MIN : every_ms;
    every_ms = every_ms > CHECK_MS_MAX ? CHECK_MS_MAX : every_ms;
    if (!uv_is_closing((uv_handle_t *)&server->check) &&
        !uv_is_active((uv_handle_t *)&server->check)) {
        uv_timer_start(&server->check, on_check, every_ms, every_ms);
    }
}

static struct visit *visit_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

struct http_server *visits_server(struct MHD_Connection *connection)
{
    const struct visit *visit = visit_of(connection);
    return visit ? visit->server : NULL;
}

void visits_expect(struct MHD_Connection *connection, unsigned within_ms)
{
    struct visit *visit = visit_of(connection);
    if (visit) {
        visit->deadline_ms = within_ms ? uv_now(visit->server->loop) + within_ms : 0;
    }
}

/* ---- coming and going ---- */

static void begin(struct http_server *server, struct MHD_Connection *connection, void **place)
{
    struct visit *visit = calloc(1, sizeof *visit);
    struct visitor *visitor = server->arriving;
    server->arriving = NULL;
    *place = visit;
    if (!visit) {
        return; /* the connection has no limits but libmicrohttpd's own timeout */
    }
    uv_update_time(server->loop);
    *visit = (struct visit){.next = server->visits,
                            .server = server,
                            .connection = connection,
                            .visitor = visitor,
                            .deadline_ms = uv_now(server->loop) + server->limits.head_timeout_ms};
    if (visit->next) {
        visit->next->previous = visit;
    }
    server->visits = visit;
    if (visitor) {
        visitor->count++;
    }
    start_checks(server);
}

static void end(struct visit *visit)
{
    struct http_server *server = visit->server;
    if (visit->previous) {
        visit->previous->next = visit->next;
    } else {
        server->visits = visit->next;
    }
    if (visit->next) {
        visit->next->previous = visit->previous;
    }
    if (visit->visitor) {
        assert(visit->visitor->count > 0);
        visit->visitor->count--;
        forget_if_gone(server, visit->visitor);
    }
    free(visit);
}

void visits_notice(void *server, struct MHD_Connection *connection, void **place,
                   enum MHD_ConnectionNotificationCode what)
{
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        begin(server, connection, place);
    } else if (*place) {
        end(*place);
        *place = NULL;
    }
}

void visits_done(struct http_server *server)
{
    while (server->visitors) {
        struct visitor *next = server->visitors->next;
        free(server->visitors);
        server->visitors = next;
    }
}
