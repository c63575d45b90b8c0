/* HTTP for the API: requests in, whole or streamed replies out; libmicrohttpd under libuv.
 *
 * Layer: services. Thread: the loop's. A handler gets a whole request (its body is bounded) and a
 * reply, which it completes now or later, by http_reply_send, or by http_reply_start, any number of
 * http_reply_write, and http_reply_end.
 *
 * Lifetimes: the request lives until the handler returns. The reply belongs to the server: after
 * send or end it is gone; when the client leaves before that, on_gone is called exactly once, and
 * it is gone after that. (A handler that answers at once need not set hooks.)
 */
#pragma once

#include <muster/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

struct http_pair {
    const char *name;
    const char *value;
};

struct http_request {
    const char *method; /* "GET" */
    const char *path;   /* decoded, without the query; starts with '/' */
    const struct http_pair *query;
    size_t query_count;
    const struct http_pair *headers;
    size_t header_count;
    const char *body; /* NUL-terminated; "" without one */
    size_t body_bytes;
    bool too_large;         /* the body was over its limit and is not here; 413 is to be answered */
    size_t body_bytes_max;  /* that limit */
    const char *head_fault; /* a sentence: path, query or headers cannot be read as they were meant
                                (NUL bytes, no UTF-8, %2F in the path, too many parameters, two
                                lengths of the body): 400 is to be answered; or NULL */
};

/* NULL when it is not there; the first one when it is there twice. Header names ignore case. */
const char *http_query(const struct http_request *request, const char *name);
const char *http_header(const struct http_request *request, const char *name);

/* "1", "t", "true" in any case; a parameter without value counts as true. Anything else, or
 * nothing, is false. */
bool http_query_bool(const struct http_request *request, const char *name);

/* ---- Replies: an interface, so that handlers can be tested without sockets ---- */

struct http_reply;
struct http_socket;

struct http_reply_ops {
    void (*header)(struct http_reply *reply, const char *name, const char *value);
    void (*send)(struct http_reply *reply, int status, const char *type, const void *bytes,
                 size_t count);
    int (*start)(struct http_reply *reply, int status, const char *type);
    int (*write)(struct http_reply *reply, const void *bytes, size_t count);
    void (*end)(struct http_reply *reply);
    int (*upgrade)(struct http_reply *reply, const char *protocol, void (*take)(void *arg, int fd),
                   void *arg);
    int (*leave)(struct http_reply *reply, const char *protocol,
                 void (*take)(void *arg, struct http_socket *socket), void *arg);
};

struct http_reply {
    const struct http_reply_ops *ops;
    void (*on_gone)(void *arg);    /* the client left; may be NULL */
    void (*on_drained)(void *arg); /* under half of the queue's bound again; may be NULL */
    void *arg;                     /* the two hooks' */
};

/* Adds a header; before send or start. */
static inline void http_reply_header(struct http_reply *reply, const char *name, const char *value)
{
    reply->ops->header(reply, name, value);
}

/* The whole answer; bytes are copied. */
static inline void http_reply_send(struct http_reply *reply, int status, const char *type,
                                   const void *bytes, size_t count)
{
    reply->ops->send(reply, status, type, bytes, count);
}

/* A stream begins; its headers are sent at once. */
static inline int http_reply_start(struct http_reply *reply, int status, const char *type)
{
    return reply->ops->start(reply, status, type);
}

/* Queues a copy. MUSTER_EAGAIN when the queue is full: nothing was taken; wait for on_drained or
 * end. Never calls a hook. */
static inline int http_reply_write(struct http_reply *reply, const void *bytes, size_t count)
{
    return reply->ops->write(reply, bytes, count);
}

/* What is queued is still sent. */
static inline void http_reply_end(struct http_reply *reply)
{
    reply->ops->end(reply);
}

/* 101 Switching Protocols: from here on the connection carries bytes both ways, without HTTP.
 * `take` is called once, from the loop: with the connection's socket, which blocks and is its own
 * to close, or with -1 when the client has gone. The reply is gone. MUSTER_EUNSUPPORTED: only over
 * the Unix socket. */
static inline int http_reply_upgrade(struct http_reply *reply, const char *protocol,
                                     void (*take)(void *arg, int fd), void *arg)
{
    return reply->ops->upgrade(reply, protocol, take, arg);
}

/* The same for a handler that speaks the next protocol in this loop, over TLS, too. `take` is
 * called once: with the connection, or with NULL when the client has gone. */
static inline int http_reply_leave(struct http_reply *reply, const char *protocol,
                                   void (*take)(void *arg, struct http_socket *socket), void *arg)
{
    return reply->ops->leave(reply, protocol, take, arg);
}

/* A connection that has left HTTP. Its descriptor, for polling alone, does not block. `on_end` is
 * called when the server stops: the descriptor is not there any more after that. */
int http_socket_fd(const struct http_socket *socket);
void http_socket_on_end(struct http_socket *socket, void (*on_end)(void *arg), void *arg);
/* They return as recv and send do: 0 at the end, -1 with errno. */
ssize_t http_socket_read(struct http_socket *socket, void *bytes, size_t room);
ssize_t http_socket_write(struct http_socket *socket, const void *bytes, size_t count);
/* There is something to be read of which polling does not tell. */
bool http_socket_pending(const struct http_socket *socket);
/* NULL is fine. */
void http_socket_close(struct http_socket *socket);

/* ---- Server ---- */

struct http_server;

struct http_limits {
    unsigned connections_max; /* default 512. Over TCP an eighth for one user, or for one address
                                 where the user is not known, and half for all but the owner */
    unsigned owner_uid;       /* the user who may have all of them; 0: the effective user */
    size_t body_bytes_max;    /* default 3 MiB, as a Kubernetes API server */
    size_t queue_bytes_max;   /* per stream, default 4 MiB */
    size_t queues_bytes_max;  /* of all streams together, default 64 MiB: past it one is full as
                                 soon as its client has left anything unread */
    unsigned head_timeout_ms; /* from the connection's start, or a request's end to the end of the
                                 next one's, which besides may wait idle_timeout_s: TLS handshake
                                 and headers; default 20 s */
    unsigned body_timeout_ms; /* from the headers to the end of the body; default 60 s */
    unsigned idle_timeout_s;  /* a connection without progress; streams that wait are not meant;
                                 default 120 */
};

struct http_options {
    const char *socket_path; /* AF_UNIX, mode 0600; what lies there is replaced. Or: */
    int port;                /* 0 chooses a free one */
    const char *address;     /* where that port is: an IPv4 address; NULL: 127.0.0.1 */
    bool tls;                /* needed where the certificate comes later */
    const char *key_pem;     /* with cert_pem: TLS; both NULL, and not tls: plain */
    const char *cert_pem;
    const char *token;        /* "Authorization: Bearer TOKEN" is asked for; NULL: not */
    const char *refused_type; /* what one without the token gets, with 401; NULL: plain text */
    const char *refused_body;
    struct http_limits limits; /* 0: the default */
};

typedef void (*http_handler)(void *arg, const struct http_request *request,
                             struct http_reply *reply);

/* MUSTER_EUNAVAIL: the port is taken; MUSTER_ECREATE: the socket cannot be made. The strings are
 * copied. */
int http_server_start(uv_loop_t *loop, const struct http_options *options, http_handler handler,
                      void *arg, struct http_server **ret, struct muster_err *err);
int http_server_port(const struct http_server *server);

/* For a server with TLS: sets the certificate of connections that begin from now on; the others go
 * on with theirs. Copied. MUSTER_ECONFIG: key and certificate cannot be read, or do not belong
 * together; then nothing has changed. */
int http_server_set_certificate(struct http_server *server, const char *key_pem,
                                const char *cert_pem, struct muster_err *err);

/* Open connections, idle ones included. */
unsigned http_server_connections(const struct http_server *server);

/* Closes every connection (on_gone for open streams), then, from the loop, frees itself. Run the
 * loop once more after this. NULL is fine. */
void http_server_stop(struct http_server *server);
