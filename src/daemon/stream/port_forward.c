/* kubectl port-forward, as SPDY/3.1 within a WebSocket: each of its connections is a pair of
 * streams, of which one carries the data and the other an error message.
 *
 * kubectl does not use windows: it sends without waiting for room, and never announces any. So if
 * one rank does not take its data, over a bound, the data for the other ranks stops, too; if the
 * client does not take data, all ranks stop sending, because there is one connection to it.
 *
 * Layer: program (daemon). Thread: the loop's. Ownership: the tunnel owns itself.
 * Source: the packages portforward of k8s.io/client-go and k8s.io/kubelet.
 */
#include "daemon/stream/port_forward.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "daemon/stream/forward.h"
#include "spdy/decoder.h"
#include "spdy/encoder.h"
#include "websocket/connection.h"
#include "websocket/handshake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAIRS_MAX = 256,
    REQUEST_BYTES = 32,
    WAITING_BYTES_MAX = 1 << 20, /* more than one piece of the client can ask for */
    MESSAGE_BYTES_MAX = 64 << 10,
};

struct tunnel {
    struct streams *streams;
    json_t *pod;
    struct websocket *ws;
    struct spdy_decoder *decoder;
    struct spdy_encoder encoder;
    struct buf waiting; /* frames for which the client had no room */
    struct pair *pairs;
    size_t pair_count;
    uint32_t newest; /* the newest stream's number */
    bool full;       /* the client has no room: ranks are not read */
    bool paused;     /* the client is not read */
};

struct pair {
    struct tunnel *tunnel;
    struct pair *next;
    char request[REQUEST_BYTES];
    int port;
    uint32_t error, data; /* numbers of streams; 0: not opened yet */
    struct forward *forward;
    bool rank_ended, client_ended;
    uint32_t taken; /* bytes of which the client was not told yet */
};

/* ---- life ---- */

static void drop(struct pair *pair)
{
    struct tunnel *t = pair->tunnel;
    struct pair **at = &t->pairs;
    while (*at != pair) {
        at = &(*at)->next;
    }
    *at = pair->next;
    t->pair_count--;
    forward_close(pair->forward);
    free(pair);
}

static void free_tunnel(struct tunnel *t)
{
    while (t->pairs) {
        drop(t->pairs);
    }
    streams_drop(t->streams);
    spdy_decoder_free(t->decoder);
    buf_done(&t->waiting);
    json_decref(t->pod);
    free(t);
}

static void end(struct tunnel *t, enum websocket_code code)
{
    websocket_finish(t->ws, code);
    free_tunnel(t);
}

/* ---- pausing ---- */

static void pause_ranks(struct tunnel *t, bool full)
{
    if (t->full != full) {
        t->full = full;
        for (struct pair *pair = t->pairs; pair; pair = pair->next) {
            if (pair->forward) {
                forward_pause(pair->forward, full);
            }
        }
    }
}

static bool takes_more(const struct tunnel *t)
{
    size_t queued = 0;
    for (const struct pair *pair = t->pairs; pair; pair = pair->next) {
        queued += pair->forward ? forward_queued(pair->forward) : 0;
    }
    return t->waiting.used == 0 && queued < FORWARD_BYTES_MAX;
}

/* Resumes reading from the client. The tunnel may end in this call, so it must be the last one. */
static void read_on(struct tunnel *t)
{
    if (t->paused && takes_more(t)) {
        t->paused = false;
        websocket_resume(t->ws);
    }
}

/* ---- to the client ---- */

static void send_frame(struct tunnel *t, const char *head, size_t head_count, const char *bytes,
                       size_t count)
{
    if (t->waiting.used == 0 && websocket_has_room(t->ws)) {
        websocket_send(t->ws, head, head_count, bytes, count);
    } else {
        buf_add(&t->waiting, head, head_count);
        buf_add(&t->waiting, bytes, count);
    }
    pause_ranks(t, t->waiting.used > 0 || !websocket_has_room(t->ws));
}

static void send_data(struct tunnel *t, uint32_t stream, const char *bytes, size_t count, bool last)
{
    char head[SPDY_HEAD_BYTES];
    send_frame(t, head, spdy_data_head(stream, count, last, head), bytes, count);
}

/* Ends both streams, with the error if there was one. */
static void send_end(const struct pair *pair, const char *why)
{
    struct tunnel *t = pair->tunnel;
    char text[MUSTER_ERR_TEXT_BYTES + 160];
    int count = why ? snprintf(text, sizeof text, "error forwarding port %d to pod %s, uid %s: %s",
                               pair->port, doc_text(t->pod, "metadata.name", ""),
                               doc_text(t->pod, "metadata.uid", ""), why)
                    : 0;
    send_data(t, pair->data, NULL, 0, true);
    send_data(t, pair->error, text, (size_t)count < sizeof text ? (size_t)count : sizeof text - 1,
              true);
}

static void on_room(void *arg)
{
    struct tunnel *t = arg;
    size_t sent = 0;
    while (sent < t->waiting.used && websocket_has_room(t->ws)) {
        size_t left = t->waiting.used - sent;
        size_t count = left < MESSAGE_BYTES_MAX ? left : MESSAGE_BYTES_MAX;
        websocket_send(t->ws, "", 0, t->waiting.data + sent, count);
        sent += count;
    }
    buf_consume(&t->waiting, sent);
    pause_ranks(t, t->waiting.used > 0 || !websocket_has_room(t->ws));
    read_on(t);
}

/* ---- from the rank ---- */

static void on_rank_bytes(void *arg, const char *bytes, size_t count)
{
    struct pair *pair = arg;
    send_data(pair->tunnel, pair->data, bytes, count, false);
}

static void on_rank_drained(void *arg)
{
    struct pair *pair = arg;
    char frame[SPDY_FRAME_BYTES_MAX];
    if (pair->taken > 0) {
        send_frame(pair->tunnel, frame, spdy_window(pair->data, pair->taken, frame), NULL, 0);
    }
    pair->taken = 0;
    read_on(pair->tunnel);
}

static void on_rank_end(void *arg, const char *why)
{
    struct pair *pair = arg;
    struct tunnel *t = pair->tunnel;
    send_end(pair, why);
    pair->rank_ended = true;
    if (why || pair->client_ended) {
        drop(pair);
    }
    read_on(t);
}

/* ---- from the client ---- */

static void connect_pair(struct pair *pair)
{
    const struct streams *streams = pair->tunnel->streams;
    const struct forward_hooks hooks = {pair, on_rank_bytes, on_rank_drained, on_rank_end};
    struct muster_err err = MUSTER_ERR_INIT;
    if (forward_open(streams->loop, streams->home, pair->tunnel->pod, pair->port, &hooks,
                     &pair->forward, &err) < 0) {
        send_end(pair, err.text);
        drop(pair);
    } else {
        forward_pause(pair->forward, pair->tunnel->full);
    }
}

/* Returns the pair with this request id; makes it if it is new. NULL if there are too many. */
static struct pair *pair_of(struct tunnel *t, const char *request)
{
    struct pair *pair = t->pairs;
    while (pair && strcmp(pair->request, request) != 0) {
        pair = pair->next;
    }
    if (!pair && t->pair_count < PAIRS_MAX && (pair = calloc(1, sizeof *pair))) {
        pair->tunnel = t;
        (void)snprintf(pair->request, sizeof pair->request, "%s", request);
        pair->next = t->pairs;
        t->pairs = pair;
        t->pair_count++;
    }
    return pair;
}

/* Returns the place of a stream in its pair, by the headers of the stream; NULL if its type is not
 * known. */
static uint32_t *place_of(struct pair *pair, const struct spdy_headers *headers)
{
    const char *type = spdy_header(headers, "streamtype");
    if (type && strcmp(type, "error") == 0) {
        return &pair->error;
    }
    return type && strcmp(type, "data") == 0 ? &pair->data : NULL;
}

static void take_open(struct tunnel *t, const struct spdy_event *event)
{
    const char *request = spdy_header(event->headers, "requestid");
    const char *port = spdy_header(event->headers, "port");
    long number = port ? strtol(port, NULL, 10) : 0;
    bool good = request && strlen(request) < REQUEST_BYTES && number > 0 && number <= UINT16_MAX;
    struct pair *pair = good ? pair_of(t, request) : NULL;
    uint32_t *place = pair ? place_of(pair, event->headers) : NULL;
    char frame[SPDY_FRAME_BYTES_MAX];
    if (!place || *place) {
        enum spdy_status status = good && !pair ? SPDY_REFUSED_STREAM : SPDY_PROTOCOL_ERROR;
        send_frame(t, frame, spdy_reset(event->stream, status, frame), NULL, 0);
        return;
    }
    *place = event->stream;
    pair->port = (int)number;
    send_frame(t, frame, spdy_reply(&t->encoder, event->stream, frame), NULL, 0);
    if (pair->error && pair->data) {
        connect_pair(pair);
    }
}

static struct pair *pair_with_data(const struct tunnel *t, uint32_t stream)
{
    struct pair *pair = t->pairs;
    while (pair && pair->data != stream) {
        pair = pair->next;
    }
    return pair;
}

/* Takes data. Data of a stream that has ended may still arrive, and is dropped; an error stream has
 * no data. */
static void take_data(struct tunnel *t, const struct spdy_event *event)
{
    struct pair *pair = pair_with_data(t, event->stream);
    if (!pair || !pair->forward || pair->client_ended) {
        return;
    }
    forward_write(pair->forward, event->bytes, event->count);
    pair->taken += (uint32_t)event->count;
    if (event->last) {
        pair->client_ended = true;
        forward_finish(pair->forward);
    }
    if (event->last && pair->rank_ended) {
        drop(pair);
    }
}

static void take_reset(struct tunnel *t, uint32_t stream)
{
    struct pair *pair = pair_with_data(t, stream);
    if (pair && !pair->rank_ended && pair->error) {
        send_data(t, pair->error, NULL, 0, true);
    }
    if (pair) {
        drop(pair);
    }
}

/* Takes an event. Returns false if it is not allowed now. */
static bool take_event(struct tunnel *t, const struct spdy_event *event)
{
    char frame[SPDY_FRAME_BYTES_MAX];
    switch (event->kind) {
    case SPDY_OPEN:
        if (event->stream <= t->newest || event->stream % 2 == 0) {
            return false;
        }
        t->newest = event->stream;
        take_open(t, event);
        break;
    case SPDY_DATA: take_data(t, event); break;
    case SPDY_RESET: take_reset(t, event->stream); break;
    case SPDY_PING: send_frame(t, frame, spdy_ping(event->stream, frame), NULL, 0); break;
    case SPDY_NOTHING:
    case SPDY_GOAWAY: break;
    }
    return !buf_failed(&t->waiting);
}

static void on_piece(void *arg, const struct websocket_piece *piece)
{
    struct tunnel *t = arg;
    for (size_t at = 0; at < piece->count;) {
        struct spdy_event event;
        long taken = spdy_decode(t->decoder, piece->bytes + at, piece->count - at, &event);
        if (taken < 0 || !take_event(t, &event)) {
            end(t, WEBSOCKET_PROTOCOL_ERROR);
            return;
        }
        at += (size_t)taken;
    }
    if (!takes_more(t)) {
        t->paused = true;
        websocket_pause(t->ws);
    }
}

static void on_gone(void *arg)
{
    end(arg, WEBSOCKET_NORMAL);
}

/* ---- opening ---- */

static void on_socket(void *arg, struct http_socket *socket)
{
    struct tunnel *t = arg;
    const struct websocket_hooks hooks = {t, on_piece, on_room, on_gone};
    struct muster_err err = MUSTER_ERR_INIT;
    if (!socket || websocket_open(t->streams->loop, socket, &hooks, &t->ws, &err) < 0) {
        free_tunnel(t);
    }
}

static int tunnel(struct streams *streams, const json_t *pod, const struct http_request *request,
                  struct http_reply *reply, struct muster_err *err)
{
    struct tunnel *t = calloc(1, sizeof *t);
    struct spdy_decoder *decoder = spdy_decoder_new();
    if (!t || !decoder) {
        free(t);
        spdy_decoder_free(decoder);
        return err_no_memory(err);
    }
    *t = (struct tunnel){.streams = streams, .pod = json_incref((json_t *)pod), .decoder = decoder};
    buf_init(&t->waiting, WAITING_BYTES_MAX);
    streams_add(streams);
    int r = websocket_accept(request, reply, PORT_FORWARD_TUNNEL, on_socket, t, err);
    if (r < 0) {
        free_tunnel(t);
    }
    return r;
}

int stream_port_forward(struct streams *streams, const json_t *pod,
                        const struct http_request *request, struct http_reply *reply,
                        struct muster_err *err)
{
    static const char *const protocols[] = {PORT_FORWARD_TUNNEL, PORT_FORWARD_CHANNELS, NULL};
    const char *protocol = stream_protocol(request, protocols, err);
    if (!protocol) {
        return MUSTER_EINVAL;
    }
    return strcmp(protocol, PORT_FORWARD_TUNNEL) == 0
               ? tunnel(streams, pod, request, reply, err)
               : port_forward_channels(streams, pod, request, reply, err);
}
