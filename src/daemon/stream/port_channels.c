/* Port-forward for clients that have a pair of channels for each port, like the Python client.
 *
 * The ports are in the query, and each is one connection, made at once. The first message of a
 * channel is its port, two bytes, the low one first. A single channel cannot be ended: the
 * WebSocket ends when the ranks have ended all connections.
 *
 * Layer: program (daemon). Thread: the loop's. Ownership: it owns itself.
 * Source: the package portforward of k8s.io/kubelet.
 */
#include "daemon/stream/port_forward.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "daemon/stream/forward.h"
#include "websocket/connection.h"
#include "websocket/handshake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PORTS_MAX = 64 };

struct channels;

struct port {
    struct channels *owner;
    struct forward *forward; /* NULL: the connection is over */
    char *why;               /* an error that was not sent yet */
    unsigned char channel;   /* the channel of its data; the next one is for its errors */
    int number;
};

struct channels {
    struct streams *streams;
    json_t *pod;
    struct websocket *ws;
    bool full;  /* the client has no room */
    bool known; /* the message's channel is known */
    unsigned char channel;
    size_t count;
    struct port ports[PORTS_MAX];
};

static void free_channels(struct channels *c)
{
    for (size_t i = 0; i < c->count; i++) {
        forward_close(c->ports[i].forward);
        free(c->ports[i].why);
    }
    streams_drop(c->streams);
    json_decref(c->pod);
    free(c);
}

static void end(struct channels *c, enum websocket_code code)
{
    websocket_finish(c->ws, code);
    free_channels(c);
}

/* ---- to the client ---- */

static void pause_ranks(struct channels *c)
{
    c->full = !websocket_has_room(c->ws);
    for (size_t i = 0; i < c->count; i++) {
        if (c->ports[i].forward) {
            forward_pause(c->ports[i].forward, c->full);
        }
    }
}

static void on_rank_bytes(void *arg, const char *bytes, size_t count)
{
    struct port *port = arg;
    const char prefix = (char)port->channel;
    websocket_send(port->owner->ws, &prefix, 1, bytes, count);
    if (!websocket_has_room(port->owner->ws)) {
        pause_ranks(port->owner);
    }
}

/* Sends the errors of ports that are over. If all ports are over, ends the WebSocket and returns
 * true. */
static bool tell_ends(struct channels *c)
{
    size_t over = 0;
    for (size_t i = 0; i < c->count && websocket_has_room(c->ws); i++) {
        struct port *port = &c->ports[i];
        if (port->why) {
            const char prefix = (char)(port->channel + 1);
            websocket_send(c->ws, &prefix, 1, port->why, strlen(port->why));
            free(port->why);
            port->why = NULL;
        }
        over += !port->forward;
    }
    if (over < c->count) {
        return false;
    }
    end(c, WEBSOCKET_NORMAL);
    return true;
}

static size_t queued(const struct channels *c)
{
    size_t count = 0;
    for (size_t i = 0; i < c->count; i++) {
        count += c->ports[i].forward ? forward_queued(c->ports[i].forward) : 0;
    }
    return count;
}

static void on_rank_drained(void *arg)
{
    const struct port *port = arg;
    if (queued(port->owner) < FORWARD_BYTES_MAX) {
        websocket_resume(port->owner->ws);
    }
}

static void over(struct port *port, const char *why)
{
    const json_t *pod = port->owner->pod;
    forward_close(port->forward);
    port->forward = NULL;
    if (why &&
        asprintf(&port->why, "error forwarding port %d to pod %s, uid %s: %s", port->number,
                 doc_text(pod, "metadata.name", ""), doc_text(pod, "metadata.uid", ""), why) < 0) {
        port->why = NULL;
    }
}

static void on_rank_end(void *arg, const char *why)
{
    struct channels *c = ((struct port *)arg)->owner;
    over(arg, why);
    if (!tell_ends(c)) {
        websocket_resume(c->ws);
    }
}

static void on_room(void *arg)
{
    struct channels *c = arg;
    if (!tell_ends(c)) {
        pause_ranks(c);
    }
}

/* ---- from the client ---- */

static void on_piece(void *arg, const struct websocket_piece *piece)
{
    struct channels *c = arg;
    const char *bytes = piece->bytes;
    size_t count = piece->count;
    c->known = c->known && !piece->first;
    if (!c->known && count > 0) {
        c->known = true;
        c->channel = (unsigned char)*bytes++;
        count--;
    }
    size_t index = c->channel / 2;
    if (c->known && c->channel % 2 == 0 && index < c->count && c->ports[index].forward) {
        forward_write(c->ports[index].forward, bytes, count);
    }
    if (queued(c) >= FORWARD_BYTES_MAX) {
        websocket_pause(c->ws);
    }
}

static void on_gone(void *arg)
{
    end(arg, WEBSOCKET_NORMAL);
}

/* ---- opening ---- */

static void connect_port(struct port *port)
{
    const struct streams *streams = port->owner->streams;
    const struct forward_hooks hooks = {port, on_rank_bytes, on_rank_drained, on_rank_end};
    struct muster_err err = MUSTER_ERR_INIT;
    for (int i = 0; i < 2; i++) {
        const char first[] = {(char)(port->channel + i), (char)port->number,
                              (char)(port->number >> 8)};
        websocket_send(port->owner->ws, first, sizeof first, NULL, 0);
    }
    if (forward_open(streams->loop, streams->home, port->owner->pod, port->number, &hooks,
                     &port->forward, &err) < 0) {
        over(port, err.text);
    }
}

static void on_socket(void *arg, struct http_socket *socket)
{
    struct channels *c = arg;
    const struct websocket_hooks hooks = {c, on_piece, on_room, on_gone};
    struct muster_err err = MUSTER_ERR_INIT;
    if (!socket || websocket_open(c->streams->loop, socket, &hooks, &c->ws, &err) < 0) {
        free_channels(c);
        return;
    }
    for (size_t i = 0; i < c->count; i++) {
        connect_port(&c->ports[i]);
    }
    (void)tell_ends(c);
}

/* Adds the ports of a list such as "8000,8001". */
static int add_ports(struct channels *c, const char *list, struct muster_err *err)
{
    for (const char *at = list; *at;) {
        char *stop;
        long number = strtol(at, &stop, 10);
        if (stop == at || (*stop && *stop != ',') || number < 1 || number > UINT16_MAX) {
            return muster_fail(err, MUSTER_EINVAL, "ports: no list of ports: %.40s", list);
        }
        if (c->count == PORTS_MAX) {
            return muster_fail(err, MUSTER_EINVAL, "ports: at most %d are forwarded", PORTS_MAX);
        }
        c->ports[c->count] = (struct port){
            .owner = c, .channel = (unsigned char)(2 * c->count), .number = (int)number};
        c->count++;
        at = stop + (*stop == ',');
    }
    return 0;
}

/* Reads the ports from the query: an API server calls the parameter "ports", a kubelet "port". */
static int read_ports(struct channels *c, const struct http_request *request,
                      struct muster_err *err)
{
    int r = 0;
    for (size_t i = 0; i < request->query_count && r == 0; i++) {
        const struct http_pair *pair = &request->query[i];
        if (strcmp(pair->name, "ports") == 0 || strcmp(pair->name, "port") == 0) {
            r = add_ports(c, pair->value, err);
        }
    }
    return r < 0 || c->count > 0
               ? r
               : muster_fail(err, MUSTER_EINVAL, "ports: say which ones are forwarded");
}

int port_forward_channels(struct streams *streams, const json_t *pod,
                          const struct http_request *request, struct http_reply *reply,
                          struct muster_err *err)
{
    struct channels *c = calloc(1, sizeof *c);
    if (!c) {
        return err_no_memory(err);
    }
    c->streams = streams;
    c->pod = json_incref((json_t *)pod);
    streams_add(streams);
    int r = read_ports(c, request, err);
    r = r < 0 ? r : websocket_accept(request, reply, PORT_FORWARD_CHANNELS, on_socket, c, err);
    if (r < 0) {
        free_channels(c);
    }
    return r;
}
